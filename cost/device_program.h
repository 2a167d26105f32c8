/* device_program.h - devices that are programs: found, started, asked (docs/devices.md).
 *
 * Every question has a limit of time. A program that ends, hangs or answers what cannot be is ended;
 * that is logged with its name and the question, which stays without an answer, and the next question
 * starts it anew. After three such faults in a row it is given up: the device is then not present
 * any more. */
#ifndef GRAFT_COST_DEVICE_PROGRAM_H
#define GRAFT_COST_DEVICE_PROGRAM_H

#include "cost/device.h"
#include "graph/model.h"

/* What the names of their libraries end with. */
#define GRAFT_DEVICE_PROGRAM_MARK ", device program 1"

/* The program that a device's name means, in env->life: a path, or the name of a program in devices/,
 * wherever what comes with Graft lies. NULL when there is none. */
const char *graft_device_program_path(graft_env *env, const char *name);

/* Whether it is a program that is here and says that it times whole models. */
bool graft_device_times_models(const graft_device *device);

/* The path of a file of this name in the folder of such a device, in env->life: it goes with the
 * device. */
const char *graft_device_file(graft_env *env, const graft_device *device, const char *name);

/* Has the device, for which the above is true, time `count` whole files in turns, `rounds` (at least
 * 1) times each: `times[k][round]`, ns of one run. The files have the inputs of `model`, which says
 * their sizes; NULL in place of a path is the model itself, as it was read. *refusal, in env->scratch, is NULL, or why there are no times: in the device's own
 * words, or a fault's, which is logged too. GRAFT_INTERRUPTED when the user asked to stop; GRAFT_IO
 * when the model cannot be written. */
GRAFT_MUST_USE graft_status graft_device_time_models(graft_env *env, graft_device *device,
                                                     const graft_model *model,
                                                     const char *const *paths, uint32_t count,
                                                     uint32_t rounds, double *const *times,
                                                     const char **refusal);

#endif
