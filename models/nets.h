/* nets.h - the architectures of the zoo, one function and one file each. */
#ifndef GRAFT_MODELS_NETS_H
#define GRAFT_MODELS_NETS_H

#include "models/builder.h"

/* x(1,3,224,224) -> logits(1,1000) */
void graft_build_resnet50(graft_builder *builder);
/* x(1,3,224,224) -> logits(1,1000) */
void graft_build_squeezenet(graft_builder *builder);
/* x(1,1,49,10) -> probabilities(1,12) */
void graft_build_dscnn(graft_builder *builder);

#endif
