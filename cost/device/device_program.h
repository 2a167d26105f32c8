/* device_program.h - devices that are programs: found, started, asked (docs/devices.md).
 *
 * Every question has a limit of time. A program that ends, hangs or answers what cannot be is
 * ended; that is logged with its name and the question, which stays without an answer, and the next
 * question starts it anew. After three such faults in a row it is given up: the device is then not
 * present any more. */
#pragma once

#include "cost/device/device.h"
#include "graph/model.h"

/* What the names of their libraries end with. */
#define GRAFT_DEVICE_PROGRAM_MARK ", device program 1"

/* The program that a device's name means, in env->life: a path, or the name of a program in
 * devices/, wherever what comes with Graft lies. NULL when there is none. */
const char *graft_device_program_path(graft_env *env, const char *name);

/* Whether it is a program that says that it times whole models; one that was given up is asked once
 * more. */
bool graft_device_times_models(const graft_device *device);

/* What it says that it runs as one, `*count` rules; NULL: it does not say, or is no program. */
const char *const *graft_device_fuses(const graft_device *device, uint32_t *count);

/* The rules that are for such a device, beside those of every device: the path of rules/NAME.rules,
 * NAME being what it says that it is, in env->life; NULL: there are none. */
const char *graft_device_rules(graft_env *env, const graft_device *device);

/* The path of a file of this name in the folder of such a device, in env->life: it goes with the
 * device. */
const char *graft_device_file(graft_env *env, const graft_device *device, const char *name);

typedef struct graft_device_turns {
    const graft_model *model; /* The files have its inputs, of its sizes. */
    const char *const
        *paths; /* Of files; NULL in place of one is the model itself, as it was read. */
    uint32_t count;
    uint32_t rounds;      /* At least 1. */
    double *const *times; /* times[k][round]: ns of one run. */
} graft_device_turns;

/* Has the device, for which graft_device_times_models is true, time whole files in turns. *refusal,
 * in env->scratch, is NULL, or why there are no times: in the device's own words, or a fault's,
 * which is logged too. GRAFT_INTERRUPTED when the user asked to stop; GRAFT_IO when the model
 * cannot be written. */
GRAFT_MUST_USE graft_status graft_device_time_models(graft_env *env, graft_device *device,
                                                     const graft_device_turns *turns,
                                                     const char **refusal);
