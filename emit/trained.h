/* trained.h - the trained networks as plain arrays. */
#ifndef GRAFT_TRAINED_H
#define GRAFT_TRAINED_H

#include "emit/reference.h"
#include "train/controller.h"

/* The arrays are those of the networks, which must outlive the result; `standardiser` stands
 * between them and may be NULL. They fit together: the encoder was made for GRAFT_FEATURE_COUNT and
 * GRAFT_EDGE_FEATURE_COUNT features and has the controller's latent; anything else is a
 * programmer's error. */
graft_float_policy graft_float_policy_of(const graft_encoder *encoder,
                                         const graft_standardiser *standardiser,
                                         const graft_controller *controller);

#endif
