/* evaluation_dreams.c - what the agent that dreams makes of models, of the files that `graft bench agents
 * MODEL --dreams --seed S --metrics FOLDER/dreams/MODEL-S.jsonl` left (see evaluation.h). */
#include "emit/bench/evaluation.h"
#include "graph/base/settings.h"

#include <math.h>
#include <string.h>

enum { SEEDS_MOST = 9, COST_MOST = 100000 };

typedef enum { ON_PRICES, ON_TABLE, IN_ENVIRONMENT, IN_DREAMS, ORIGINS } origin;
/* As bench_agents.c names them. */
static const char *const methods[ORIGINS] = {"greedy over prices", "greedy over the tariff",
                                             "candidates", "candidates, dreams"};

typedef enum { EXPLAINED, OF_RULES, CHANGED, CHANGED_LATER, DREAMED, REAL, FIGURES } figure;
static const char *const figures[FIGURES] = {"reward_explained", "by_mean_of_rule", "changed_f1_1",
                                             "changed_f1_8",     "dreamed",         "real"};

/* A model, over seeds. */
typedef struct {
    const char *name;
    uint32_t seeds;
    uint32_t holding; /* Seeds with which all gates hold. */
    double figures[FIGURES][SEEDS_MOST];
    double cost[ORIGINS][SEEDS_MOST]; /* Percent of the graph as given. */
    double steps[ORIGINS];            /* Real ones, sum over seeds. */
    bool has_gates;       /* Of the seed in hand: a run that was interrupted has none. */
    graft_buffer updates; /* Of the first seed, for plots: update, percent saved... */
    graft_buffer dreams;  /* ...update, percent dreamed and lived... */
    graft_buffer rewards; /* ...real, said. */
} dreamt_model;

/* ------------------------------------------------------------------- reading */

static graft_status take_result(graft_env *env, const graft_yaml *line, dreamt_model *model)
{
    const char *method = NULL;
    double part = 0.0;
    int64_t steps = 0;
    GRAFT_PASS(graft_yaml_text(env, line, "method", &method));
    GRAFT_PASS(graft_yaml_real(env, line, "cost_part", 0, COST_MOST, &part));
    GRAFT_PASS(graft_yaml_integer(env, line, "interactions", 0, INT64_MAX / 2, &steps));
    for (uint32_t k = 0; k < ORIGINS; k++) {
        if (strcmp(method, methods[k]) == 0) {
            model->cost[k][model->seeds] = 100.0 * part;
            model->steps[k] += (double)steps;
        }
    }
    return GRAFT_OK;
}

static graft_status take_gates(graft_env *env, const graft_yaml *line, dreamt_model *model)
{
    const char *of = NULL;
    bool hold = false;
    GRAFT_PASS(graft_yaml_text(env, line, "model", &of));
    if (strcmp(of, "all") != 0) {
        return GRAFT_OK;
    }
    for (uint32_t k = 0; k < FIGURES; k++) {
        GRAFT_PASS(graft_yaml_real(env, line, figures[k], -COST_MOST, COST_MOST,
                                   &model->figures[k][model->seeds]));
    }
    GRAFT_PASS(graft_yaml_bool(env, line, "hold", &hold));
    model->holding += hold ? 1 : 0;
    model->has_gates = true;
    return GRAFT_OK;
}

/* Two or three of a line's numbers as a row of plot data. */
static graft_status take_row(graft_env *env, const graft_yaml *line, const char *const keys[],
                             uint32_t count, graft_buffer *rows)
{
    for (uint32_t k = 0; k < count; k++) {
        double value = 0.0;
        GRAFT_PASS(graft_yaml_real(env, line, keys[k], -COST_MOST, COST_MOST, &value));
        graft_buffer_printf(rows, k + 1 < count ? "%.5g " : "%.5g\n", value);
    }
    return GRAFT_OK;
}

static graft_status take_line(graft_env *env, void *context, const graft_yaml *line)
{
    static const char *const of_update[] = {"update", "saved"};
    static const char *const of_dream[] = {"update", "dreamed", "lived"};
    static const char *const of_reward[] = {"real", "said"};
    graft_status status = GRAFT_OK;
    dreamt_model *model = context;
    const char *kind = NULL;
    GRAFT_CHECK(graft_yaml_text(env, line, "kind", &kind));
    if (strcmp(kind, "result") == 0) {
        GRAFT_CHECK(take_result(env, line, model));
    } else if (strcmp(kind, "gates") == 0) {
        GRAFT_CHECK(take_gates(env, line, model));
    } else if (model->seeds > 0) {
        goto done;
    } else if (strcmp(kind, "update") == 0) {
        GRAFT_CHECK(take_row(env, line, of_update, 2, &model->updates));
    } else if (strcmp(kind, "dream") == 0) {
        GRAFT_CHECK(take_row(env, line, of_dream, 3, &model->dreams));
    } else {
        GRAFT_CHECK(take_row(env, line, of_reward, 2, &model->rewards));
    }
done:
    return status;
}

static graft_status read_model(graft_env *env, const char *folder, dreamt_model *model)
{
    graft_buffer *rows[] = {&model->updates, &model->dreams, &model->rewards};
    for (uint32_t k = 0; k < 3; k++) {
        *rows[k] = (graft_buffer){.arena = env->scratch};
    }
    for (uint32_t seed = 1; seed <= SEEDS_MOST; seed++) {
        const dreamt_model before = *model;
        model->has_gates = false;
        GRAFT_PASS(graft_yaml_read_lines(
            env, env->scratch,
            graft_arena_printf(env->scratch, "%s/dreams/%s-%u.jsonl", folder, model->name, seed),
            take_line, model));
        if (model->has_gates) {
            model->seeds++;
        } else {
            *model = before;
        }
    }
    return GRAFT_OK;
}

/* ------------------------------------------------------------------- tables */

static double mean_of(const double *values, uint32_t count)
{
    double sum = 0.0;
    for (uint32_t i = 0; i < count; i++) {
        sum += values[i];
    }
    return sum / count;
}

/* The mean over seeds, and from where to where if that shows in so many decimals. */
static void print_range(graft_buffer *page, const dreamt_model *model, const double *values,
                        int decimals)
{
    double least = values[0];
    double most = values[0];
    for (uint32_t i = 1; i < model->seeds; i++) {
        least = fmin(least, values[i]);
        most = fmax(most, values[i]);
    }
    graft_buffer_printf(page, " | %.*f", decimals, mean_of(values, model->seeds));
    if (most - least >= pow(10.0, -decimals)) {
        graft_buffer_printf(page, " (%.*f to %.*f)", decimals, least, decimals, most);
    }
}

static void print_gates(graft_buffer *page, const dreamt_model *models, uint32_t count)
{
    uint32_t faithful = 0;
    for (uint32_t m = 0; m < count; m++) {
        faithful += models[m].holding == models[m].seeds ? 1 : 0;
    }
    graft_buffer_printf(
        page,
        "### Can the environment be modelled, and its rewards?\n\nHeld against episodes that "
        "it has not seen: the part of the variance of rewards that the\nworld model explains "
        "(in brackets by the mean of the rule), how well it tells which\ncandidates a rewrite "
        "closes and opens (F1, one step and eight steps into a dream), and the\nmean return of "
        "dreams and of episodes by the same policy, percent of the cost. *Gates*:\nseeds with "
        "which rewards explain 0.3 more than the mean of the rule or 0.99, changes have 0.9\n"
        "one step ahead, and returns are within a tenth.\n\n| | seeds | reward explained | (by "
        "rule) | changes, 1 ahead | 8 ahead | dreamed | real | gates "
        "|\n|---|---|---|---|---|---|---|---|---|\n");
    for (uint32_t m = 0; m < count; m++) {
        const dreamt_model *model = &models[m];
        graft_buffer_printf(page, "| %s | %u", model->name, model->seeds);
        for (uint32_t k = 0; k < FIGURES; k++) {
            print_range(page, model, model->figures[k], k >= DREAMED ? 1 : 2);
        }
        graft_buffer_printf(page, " | %u of %u |\n", model->holding, model->seeds);
    }
    graft_buffer_printf(
        page,
        "\nWith every seed they hold on %u of %u models.\n\n![what the world model "
        "says of a step, and what it brings](evaluation/rewards.svg)\n\nEach dot is "
        "a step of an episode that it has not seen, first seed.\n\n",
        faithful, count);
}

static void print_agents(graft_buffer *page, const dreamt_model *models, uint32_t count)
{
    uint32_t level = 0;
    double logs = 0.0;
    graft_buffer_printf(
        page,
        "### Does what dreams teach hold outside?\n\nFrom the same start, a table of the "
        "model's own node costs: PPO in the environment, which asks\nfor the price of each "
        "step, and PPO in dreams of the world model, whose real steps are the\nepisodes that "
        "it was made from and trials. Percent of the graph as given; most likely actions;\nmean "
        "over seeds, from the best to the worst.\n\n| | greedy over prices | the table alone | "
        "in the environment | real steps | in dreams | real steps |\n|---|---|---|---|---|---|"
        "---|\n");
    for (uint32_t m = 0; m < count; m++) {
        const dreamt_model *model = &models[m];
        graft_buffer_printf(page, "| %s", model->name);
        for (uint32_t k = 0; k < ORIGINS; k++) {
            print_range(page, model, model->cost[k], 2);
            if (k >= IN_ENVIRONMENT) {
                graft_buffer_printf(page, " | %.0f", model->steps[k] / model->seeds);
            }
        }
        graft_buffer_printf(page, " |\n");
        level += mean_of(model->cost[IN_DREAMS], model->seeds) <=
                         mean_of(model->cost[IN_ENVIRONMENT], model->seeds) + 0.1
                     ? 1
                     : 0;
        logs += log(model->steps[IN_DREAMS] / model->steps[IN_ENVIRONMENT]);
    }
    graft_buffer_printf(
        page,
        "\nOn %u of %u models dreams end at most 0.1 points above the environment, "
        "with %.0f %% of its real\nsteps (geometric mean).\n\n![training "
        "curves](evaluation/training.svg)\n\nPercent saved by update, first seed: "
        "mean of the episodes learnt from, mean of the dreams, and\nwhat the policy "
        "of the dreams saves when it is tried.\n\n",
        level, count, 100.0 * exp(logs / count));
}

/* ------------------------------------------------------------------- plots */

static graft_status write_plot(graft_env *env, const char *folder, const char *name,
                               const graft_buffer *data, const graft_buffer *plot)
{
    GRAFT_PASS(graft_file_write(env, graft_arena_printf(env->scratch, "%s/%s.dat", folder, name),
                                data->data, data->size));
    return graft_file_write(env, graft_arena_printf(env->scratch, "%s/%s.gp", folder, name),
                            plot->data, plot->size);
}

/* A small plot for each model, three in a row. Data have `blocks` parts of each. */
static void begin_plots(graft_buffer *plot, const char *name, uint32_t count)
{
    const uint32_t rows = (count + 2) / 3;
    graft_buffer_printf(
        plot,
        "set terminal svg size 900,%u font 'sans,11' background 'white'\nset output "
        "'%s.svg'\nset multiplot layout %u,3\nset grid\nset title noenhanced\n",
        200 * rows, name, rows);
}

static graft_status plot_training(graft_env *env, const char *folder, const dreamt_model *models,
                                  uint32_t count)
{
    graft_buffer data = {.arena = env->scratch};
    graft_buffer plot = {.arena = env->scratch};
    begin_plots(&plot, "training", count);
    for (uint32_t m = 0; m < count; m++) {
        graft_buffer_printf(&data, "%s\n\n%s\n\n", models[m].updates.data, models[m].dreams.data);
        graft_buffer_printf(
            &plot,
            "set title '%s'\nset key %s\nplot 'training.dat' index %u using 1:2 with lines lw 2 "
            "title 'environment', '' index %u using 1:2 with lines lw 2 title 'dreams', '' index "
            "%u "
            "using 1:3 with points pt 7 ps 0.4 title 'tried'\n",
            models[m].name, m == 0 ? "above samplen 2" : "off", 2 * m, 2 * m + 1, 2 * m + 1);
    }
    graft_buffer_printf(&plot, "unset multiplot\n");
    return write_plot(env, folder, "training", &data, &plot);
}

static graft_status plot_rewards(graft_env *env, const char *folder, const dreamt_model *models,
                                 uint32_t count)
{
    graft_buffer data = {.arena = env->scratch};
    graft_buffer plot = {.arena = env->scratch};
    begin_plots(&plot, "rewards", count);
    graft_buffer_printf(&plot, "set key off\nset xlabel 'real'\nset ylabel 'said'\n");
    for (uint32_t m = 0; m < count; m++) {
        graft_buffer_printf(&data, "%s\n\n", models[m].rewards.data);
        graft_buffer_printf(&plot,
                            "set title '%s'\nplot 'rewards.dat' index %u using 1:2 with points pt "
                            "7 ps 0.3, x with lines lc 'gray'\n",
                            models[m].name, m);
    }
    graft_buffer_printf(&plot, "unset multiplot\n");
    return write_plot(env, folder, "rewards", &data, &plot);
}

graft_status graft_evaluation_dreams(graft_env *env, const char *const models[], uint32_t count,
                                     const char *folder, graft_buffer *page)
{
    dreamt_model *dreamt = GRAFT_NEW(env->scratch, dreamt_model, count + 1);
    uint32_t told = 0;
    for (uint32_t m = 0; m < count; m++) {
        dreamt[told] = (dreamt_model){.name = models[m]};
        GRAFT_PASS(read_model(env, folder, &dreamt[told]));
        told += dreamt[told].seeds > 0 ? 1 : 0;
    }
    if (told == 0) {
        return GRAFT_OK;
    }
    graft_buffer_printf(page, "## Dreams\n\nAn agent for one model each, trained by `graft bench "
                              "agents MODEL --dreams`.\n\n");
    print_gates(page, dreamt, told);
    print_agents(page, dreamt, told);
    GRAFT_PASS(plot_training(env, folder, dreamt, told));
    return plot_rewards(env, folder, dreamt, told);
}
