/* plot.c - an SVG roofline (see plot.h). Plain shapes and texts: nothing is needed to write it, and
 * every browser shows it. */
#include "cost/measure/plot.h"

#include "graph/base/file.h"

#include <math.h>

enum { WIDTH = 860, HEIGHT = 560, LEFT = 80, RIGHT = 30, TOP = 50, BOTTOM = 60 };

/* Ranges as decimal logarithms: operations per byte, operations per ns. */
typedef struct {
    double x_low;
    double x_high;
    double y_low;
    double y_high;
} axes;

static double place_x(const axes *a, double intensity)
{
    double part = (log10(intensity) - a->x_low) / (a->x_high - a->x_low);
    return LEFT + part * (WIDTH - LEFT - RIGHT);
}

static double place_y(const axes *a, double rate)
{
    double part = (log10(rate) - a->y_low) / (a->y_high - a->y_low);
    return HEIGHT - BOTTOM - part * (HEIGHT - TOP - BOTTOM);
}

static bool computes(const graft_cost_row *row)
{
    return row->entry.flops > 0 && row->entry.bytes > 0;
}

static double intensity_of(const graft_cost_entry *entry)
{
    return (double)entry->flops / (double)entry->bytes;
}

static double rate_of(const graft_cost_entry *entry)
{
    return (double)entry->flops / entry->median_ns;
}

/* Whole decades around all rows and the knee of the roof. */
static axes find_axes(const graft_plot *plot)
{
    const graft_ceiling *ceiling = plot->ceiling;
    double knee = log10(ceiling->flops_per_ns / ceiling->bytes_per_ns);
    axes a = {knee - 1.0, knee + 1.0, log10(ceiling->flops_per_ns) - 2.0,
              log10(ceiling->flops_per_ns) + 0.1};
    for (uint32_t i = 0; i < plot->count; i++) {
        const graft_cost_entry *entry = &plot->rows[i].entry;
        if (computes(&plot->rows[i])) {
            a.x_low = fmin(a.x_low, log10(intensity_of(entry)));
            a.x_high = fmax(a.x_high, log10(intensity_of(entry)));
            a.y_low = fmin(a.y_low, log10(rate_of(entry)));
        }
    }
    return (axes){floor(a.x_low), ceil(a.x_high), floor(a.y_low), ceil(a.y_high)};
}

static void print_line(graft_buffer *out, double x1, double y1, double x2, double y2,
                       const char *style)
{
    graft_buffer_printf(out, "<path d='M%.1f %.1f L%.1f %.1f' style='fill:none;%s'/>\n", x1, y1, x2,
                        y2, style);
}

static void print_axes(graft_buffer *out, const axes *a)
{
    static const char grid[] = "stroke:#ddd";
    for (int d = (int)a->x_low; d <= (int)a->x_high; d++) {
        double x = place_x(a, pow(10.0, d));
        print_line(out, x, TOP, x, HEIGHT - BOTTOM, grid);
        graft_buffer_printf(out, "<text x='%.1f' y='%d' text-anchor='middle'>%g</text>\n", x,
                            HEIGHT - BOTTOM + 20, pow(10.0, d));
    }
    for (int d = (int)a->y_low; d <= (int)a->y_high; d++) {
        double y = place_y(a, pow(10.0, d));
        print_line(out, LEFT, y, WIDTH - RIGHT, y, grid);
        graft_buffer_printf(out, "<text x='%d' y='%.1f' text-anchor='end'>%g</text>\n", LEFT - 8,
                            y + 4.0, pow(10.0, d));
    }
    graft_buffer_printf(out,
                        "<text x='%d' y='%d' text-anchor='middle'>operations per byte</text>\n",
                        (LEFT + WIDTH - RIGHT) / 2, HEIGHT - 15);
    graft_buffer_printf(out, "<text x='%d' y='%d'>GFLOP/s</text>\n", LEFT, TOP - 8);
}

static void print_roof(graft_buffer *out, const axes *a, const graft_ceiling *ceiling)
{
    static const char roof[] = "stroke:#b00;stroke-width:2";
    double knee = ceiling->flops_per_ns / ceiling->bytes_per_ns;
    double start = fmax(pow(10.0, a->x_low), pow(10.0, a->y_low) / ceiling->bytes_per_ns);
    print_line(out, place_x(a, start), place_y(a, start * ceiling->bytes_per_ns), place_x(a, knee),
               place_y(a, ceiling->flops_per_ns), roof);
    print_line(out, place_x(a, knee), place_y(a, ceiling->flops_per_ns), WIDTH - RIGHT,
               place_y(a, ceiling->flops_per_ns), roof);
    graft_buffer_printf(out,
                        "<text x='%d' y='%.1f' text-anchor='end' fill='#b00'>%.0f GFLOP/s, %.1f "
                        "GB/s</text>\n",
                        WIDTH - RIGHT, place_y(a, ceiling->flops_per_ns) - 6.0,
                        ceiling->flops_per_ns, ceiling->bytes_per_ns);
}

/* A title shows when the pointer rests on the disc. */
static void print_row(graft_buffer *out, const axes *a, const graft_cost_row *row, double total_ns)
{
    const graft_op_info *info = graft_op(row->signature.op);
    double share = row->entry.median_ns * row->count / total_ns;
    bool measured = row->entry.source == GRAFT_COST_MEASURED;
    graft_buffer_printf(out,
                        "<circle cx='%.1f' cy='%.1f' r='%.1f' fill='%s' fill-opacity='0.5'>"
                        "<title>%s: %u x %.1f us, %.1f %%</title></circle>\n",
                        place_x(a, intensity_of(&row->entry)), place_y(a, rate_of(&row->entry)),
                        2.0 + 40.0 * sqrt(share), measured ? "#06c" : "#999",
                        info == NULL ? "operator" : info->name, row->count,
                        row->entry.median_ns / 1e3, 100.0 * share);
}

/* Texts of ours hold nothing that XML would take for markup, names of files might. */
static void print_title(graft_buffer *out, const char *title)
{
    graft_buffer_printf(out, "<text x='%d' y='20' font-size='16'>", LEFT);
    for (const char *c = title; *c != '\0'; c++) {
        if (*c == '<' || *c == '>' || *c == '&') {
            graft_buffer_printf(out, "&#%d;", *c);
        } else {
            graft_buffer_append(out, c, 1);
        }
    }
    graft_buffer_printf(out, "</text>\n");
}

graft_status graft_plot_write(graft_env *env, const char *path, const graft_plot *plot)
{
    graft_mark mark = graft_arena_mark(env->scratch);
    graft_buffer out = {.arena = env->scratch};
    const graft_ceiling *ceiling = plot->ceiling;
    if (!(ceiling->flops_per_ns > 0.0) || !(ceiling->bytes_per_ns > 0.0)) {
        return GRAFT_FAIL(env, GRAFT_UNSUPPORTED,
                          "%s: too little was measured on the device to draw a roofline", path);
    }
    const axes a = find_axes(plot);
    graft_buffer_printf(&out,
                        "<svg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 %d %d' "
                        "font-family='sans-serif' font-size='12'>\n"
                        "<rect width='100%%' height='100%%' fill='#fff'/>\n",
                        WIDTH, HEIGHT);
    print_title(&out, plot->title);
    print_axes(&out, &a);
    print_roof(&out, &a, ceiling);
    for (uint32_t i = 0; i < plot->count; i++) {
        if (computes(&plot->rows[i])) {
            print_row(&out, &a, &plot->rows[i], plot->total_ns);
        }
    }
    graft_buffer_printf(&out, "</svg>\n");
    graft_status status = graft_file_write(env, path, out.data, out.size);
    graft_arena_release(env->scratch, mark);
    return status;
}
