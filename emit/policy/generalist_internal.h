/* generalist_internal.h - what the stages of generalist.c share with those that find where a tariff
 * leads (generalist_rows.c). */
#pragma once

#include "emit/command/command_table.h"
#include "emit/policy/generalist.h"
#include "train/tariff/tuning.h"

/* A rule, and what it brought on the models that are learnt from. */
typedef struct {
    uint32_t rule;
    uint32_t uses;
    uint64_t gain;  /* Parts of graphs, in units of 2^-32. */
    uint32_t bytes; /* Packed. */
    bool always;
} graft_generalist_use;

/* What some method made of a model. */
typedef struct {
    double ns;
    double part; /* Of the model as given; greedy search's alone. */
    uint32_t steps;
    uint32_t estimated; /* Estimates in the price. */
    uint64_t priced;    /* Graphs whose price was asked for. */
    double seconds;
} graft_generalist_outcome;

typedef struct {
    graft_generalist_outcome given;
    graft_generalist_outcome greedy;
    graft_generalist_outcome policy;
    double guessed; /* Part of the estimate of the graph as given that rests on the fallback. */
} graft_generalist_row;

typedef struct {
    const graft_generalist_options *options;
    graft_session_options session;
    graft_env *env; /* Where what follows lives: models come and go in others. */
    graft_table_model *models;
    uint32_t count;
    uint64_t learnt;      /* Bit m: model m is learnt from. */
    const char *held_out; /* The family of the others, or NULL. */
    const char *out;      /* The folder of the policy in hand. */
    graft_graph **graphs; /* By model, as given. */
    graft_apply_options apply;
    uint32_t step_limit;      /* Of the engine's loop, enough for each model. */
    const char *device;       /* By its whole name. */
    graft_database *database; /* What the fallback learns from besides, or NULL. */
    graft_book book;
    graft_tariff measured; /* Rows as measured: what graphs are judged by that have estimates. */
    graft_device *device_of_prices;
    graft_cost *prices; /* What the others are judged by. It measures nothing. */
    graft_leaning_rows leaning_rows;
    graft_leaning leaning;
    graft_tariff tariff; /* The one that leans and is tuned: what ships. */
    uint32_t rule_count; /* Those that the device can use... */
    graft_rule *rules;
    const char **names;
    const uint64_t *exact; /* Ids of those that give the same bits. */
    uint32_t exact_count;
    graft_generalist_use *uses;
    const char **kept_names; /* ...and of those in `policy`. */
    graft_policy policy;
    graft_generalist_row *rows;
    /* By model: how many estimates more than the graph as given the graph may rest on that a tariff
     * leads to. */
    uint32_t estimates_most[GRAFT_TABLE_MODELS];
} graft_generalist;

static inline bool graft_generalist_learns(const graft_generalist *g, uint32_t model)
{
    return (g->learnt >> model & 1u) != 0;
}

/* A policy that decides by the tariff over some of the rules. */
GRAFT_MUST_USE graft_status graft_generalist_open_policy(graft_generalist *g,
                                                         const graft_rule *rules, uint32_t count);
/* Runs the engine's own loop on a model, in env->unit. */
GRAFT_MUST_USE graft_status graft_generalist_follow(graft_env *env, const graft_generalist *g,
                                                    const graft_policy *policy, uint32_t model,
                                                    graft_state *state, graft_report *report);
/* Lets rows lean and notes what each rule brings then. A policy without a family does not lean:
 * hardly a form of the family has a row that could. */
GRAFT_MUST_USE graft_status graft_generalist_lean(graft_generalist *g);
/* Tunes rows to the graphs that the policy ends at; nor is one tuned without a family. */
GRAFT_MUST_USE graft_status graft_generalist_tune(graft_generalist *g);
