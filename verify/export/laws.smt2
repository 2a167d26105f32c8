; Laws of sums and maxima that proofs for all sizes use (verify/core/symfold.h), for functions of
; which nothing is known, each by induction over n. Every check-sat must be unsat.
;
; F(n) is the sum of f over 0 <= r < n, G likewise of g; M(n) is the largest f(r) among those r at
; which the guard g holds.
(set-info :smt-lib-version 2.6)
(set-option :produce-models false)
(set-logic ALL)

; ---- linear
(push 1)
; f(r) = c1 g1(r) + c2 g2(r) for 0 <= r < n: F(n) = c1 G1(n) + c2 G2(n)
; F_n is F(n), f_n is f(n), and so on; F(n + 1) is F_n + f_n where 0 <= n, and F(n) 0 where n <= 0
(declare-const F_n Real)
(declare-const f_n Real)
(declare-const c1 Real)
(declare-const G1_n Real)
(declare-const g1_n Real)
(declare-const c2 Real)
(declare-const G2_n Real)
(declare-const g2_n Real)
(push 1) ; n <= 0
(assert (not (= 0.0 (+ (* c1 0.0) (* c2 0.0)))))
(check-sat)
(pop 1)
(push 1) ; from n to n + 1
(assert (= F_n (+ (* c1 G1_n) (* c2 G2_n))))
(assert (= f_n (+ (* c1 g1_n) (* c2 g2_n)))) ; the premise at r = n
(assert (not (= (+ F_n f_n) (+ (* c1 (+ G1_n g1_n)) (* c2 (+ G2_n g2_n))))))
(check-sat)
(pop 1)
(pop 1)

; ---- split
(push 1)
; g(r) = f(r + m) for 0 <= r < n - m, 0 <= m <= n: F(n) = F(m) + G(n - m)
(declare-const n Int)
(declare-fun f (Int) Real)
(declare-fun F (Int) Real) ; the sum of f over 0 <= r < n
(assert (=> (<= n 0) (= (F n) 0.0)))
(assert (=> (<= 0 n) (= (F (+ n 1)) (+ (F n) (f n)))))
(declare-const m Int)
(declare-fun g (Int) Real)
(declare-fun G (Int) Real)
(assert (= (G 0) 0.0))
(assert (=> (<= m n) (= (G (- (+ n 1) m)) (+ (G (- n m)) (g (- n m))))))
(assert (<= 0 m))
(assert (forall ((r Int)) (=> (and (<= 0 r) (< r (- (+ n 1) m))) (= (g r) (f (+ r m))))))
(push 1) ; n = m
(assert (= n m))
(assert (not (= (F n) (+ (F m) (G (- n m))))))
(check-sat)
(pop 1)
(push 1) ; from n to n + 1
(assert (<= m n))
(assert (= (F n) (+ (F m) (G (- n m)))))
(assert (= (g (- n m)) (f (+ (- n m) m)))) ; the premise at r = n - m
(assert (not (= (F (+ n 1)) (+ (F m) (G (- (+ n 1) m))))))
(check-sat)
(pop 1)
(pop 1)

; ---- exchange
(push 1)
; the sum over r < n of P(r) = sum over q < m of f(r, q) is the sum over q < m of
; Q(n, q) = sum over r < n of f(r, q). Used: linear, at m.
(declare-const n Int)
(declare-const m Int)
(declare-fun f (Int Int) Real)
(declare-fun P (Int) Real) ; the sum over q < m of f(r, q)
(declare-fun F (Int) Real) ; the sum over r < n of P(r)
(declare-fun Q (Int Int) Real)
(declare-fun X (Int) Real) ; the sum over q < m of Q(n, q), by n
(assert (=> (<= n 0) (= (F n) 0.0)))
(assert (=> (<= 0 n) (= (F (+ n 1)) (+ (F n) (P n)))))
(assert (forall ((q Int)) (=> (<= n 0) (= (Q n q) 0.0))))
(assert (forall ((q Int)) (=> (<= 0 n) (= (Q (+ n 1) q) (+ (Q n q) (f n q))))))
; linear, with factors 0
(assert (=> (forall ((q Int)) (=> (and (<= 0 q) (< q m)) (= (Q n q) 0.0))) (= (X n) 0.0)))
; linear, with factors 1
(assert (=> (forall ((q Int)) (=> (and (<= 0 q) (< q m)) (= (Q (+ n 1) q) (+ (Q n q) (f n q))))) (= (X (+ n 1)) (+ (X n) (P n)))))
(push 1) ; n <= 0
(assert (<= n 0))
(assert (not (= (F n) (X n))))
(check-sat)
(pop 1)
(push 1) ; from n to n + 1
(assert (<= 0 n))
(assert (= (F n) (X n)))
(assert (not (= (F (+ n 1)) (X (+ n 1)))))
(check-sat)
(pop 1)
(pop 1)

; ---- count
(push 1)
; f(r) = 1 for 0 <= r < n, 0 <= n: F(n) = n
(declare-const n Int)
(declare-fun f (Int) Real)
(declare-fun F (Int) Real) ; the sum of f over 0 <= r < n
(assert (=> (<= n 0) (= (F n) 0.0)))
(assert (=> (<= 0 n) (= (F (+ n 1)) (+ (F n) (f n)))))
(assert (forall ((r Int)) (=> (and (<= 0 r) (< r (+ n 1))) (= (f r) 1.0))))
(push 1) ; n = 0
(assert (= n 0))
(assert (not (= (F n) (to_real n))))
(check-sat)
(pop 1)
(push 1) ; from n to n + 1
(assert (<= 0 n))
(assert (= (F n) (to_real n)))
(assert (not (= (F (+ n 1)) (to_real (+ n 1)))))
(check-sat)
(pop 1)
(pop 1)

; ---- one
(push 1)
; F(1) = f(0)
(declare-const n Int)
(declare-fun f (Int) Real)
(declare-fun F (Int) Real) ; the sum of f over 0 <= r < n
(assert (=> (<= n 0) (= (F n) 0.0)))
(assert (=> (<= 0 n) (= (F (+ n 1)) (+ (F n) (f n)))))
(assert (= n 0))
(assert (not (= (F 1) (f 0))))
(check-sat)
(pop 1)

; ---- sign
(push 1)
; 0 <= f(r) for 0 <= r < n: 0 <= F(n); 0 < f(r), 1 <= n: 0 < F(n)
(declare-const n Int)
(declare-fun f (Int) Real)
(declare-fun F (Int) Real) ; the sum of f over 0 <= r < n
(assert (=> (<= n 0) (= (F n) 0.0)))
(assert (=> (<= 0 n) (= (F (+ n 1)) (+ (F n) (f n)))))
(push 1) ; n <= 0
(assert (<= n 0))
(assert (not (<= 0.0 (F n))))
(check-sat)
(pop 1)
(push 1) ; from n to n + 1
(assert (forall ((r Int)) (=> (and (<= 0 r) (< r (+ n 1))) (<= 0.0 (f r)))))
(assert (<= 0 n))
(assert (<= 0.0 (F n)))
(assert (not (<= 0.0 (F (+ n 1)))))
(check-sat)
(pop 1)
(push 1) ; strictly, n = 1
(assert (= n 0))
(assert (< 0.0 (f 0)))
(assert (not (< 0.0 (F (+ n 1)))))
(check-sat)
(pop 1)
(push 1) ; strictly, from n to n + 1
(assert (forall ((r Int)) (=> (and (<= 0 r) (< r (+ n 1))) (< 0.0 (f r)))))
(assert (<= 1 n))
(assert (< 0.0 (F n)))
(assert (not (< 0.0 (F (+ n 1)))))
(check-sat)
(pop 1)
(pop 1)

; ---- bound
(push 1)
; g(t), 0 <= t < n: A(n) and M(n) >= f(t)
(declare-const n Int)
(declare-fun f (Int) Real)
(declare-fun g (Int) Bool) ; the guard
(declare-fun A (Int) Bool) ; whether g holds at some 0 <= r < n
(declare-fun M (Int) Real) ; the largest f(r) among those
(assert (=> (<= n 0) (not (A n))))
(assert (=> (<= 0 n) (= (A (+ n 1)) (or (A n) (g n)))))
(assert (=> (<= 0 n) (= (M (+ n 1)) (ite (not (g n)) (M n) (ite (and (A n) (>= (M n) (f n))) (M n) (f n))))))
(declare-const t Int)
(push 1) ; n <= 0: there is no such t
(assert (<= n 0))
(assert (and (<= 0 t) (< t n) (g t)))
(assert (not (and (A n) (>= (M n) (f t)))))
(check-sat)
(pop 1)
(push 1) ; from n to n + 1
(assert (<= 0 n))
(assert (=> (and (<= 0 t) (< t n) (g t)) (and (A n) (>= (M n) (f t)))))
(assert (and (<= 0 t) (< t (+ n 1)) (g t)))
(assert (not (and (A (+ n 1)) (>= (M (+ n 1)) (f t)))))
(check-sat)
(pop 1)
(pop 1)

; ---- attained
(push 1)
; A(n): there is a 0 <= u < n with g(u) and M(n) = f(u)
(declare-const n Int)
(declare-fun f (Int) Real)
(declare-fun g (Int) Bool) ; the guard
(declare-fun A (Int) Bool) ; whether g holds at some 0 <= r < n
(declare-fun M (Int) Real) ; the largest f(r) among those
(assert (=> (<= n 0) (not (A n))))
(assert (=> (<= 0 n) (= (A (+ n 1)) (or (A n) (g n)))))
(assert (=> (<= 0 n) (= (M (+ n 1)) (ite (not (g n)) (M n) (ite (and (A n) (>= (M n) (f n))) (M n) (f n))))))
(push 1) ; n <= 0: A(n) does not hold
(assert (<= n 0))
(assert (A n))
(check-sat)
(pop 1)
(push 1) ; from n to n + 1; u is what there is for n, if A(n)
(declare-const u Int)
(assert (<= 0 n))
(assert (=> (A n) (and (<= 0 u) (< u n) (g u) (= (M n) (f u)))))
(assert (A (+ n 1)))
; neither u nor n will do for n + 1
(assert (not (and (<= 0 u) (< u (+ n 1)) (g u) (= (M (+ n 1)) (f u)))))
(assert (not (and (g n) (= (M (+ n 1)) (f n)))))
(check-sat)
(pop 1)
(pop 1)
