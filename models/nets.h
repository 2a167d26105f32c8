/* nets.h - the architectures of the zoo, one function each; one file for each family. */
#pragma once

#include "models/builder.h"

/* Images: x(1,3,224,224), Inception (1,3,299,299) -> logits(1,1000) */
void graft_build_resnet18(graft_builder *builder);
void graft_build_resnet50(graft_builder *builder);
void graft_build_resnext50(graft_builder *builder);
void graft_build_squeezenet(graft_builder *builder);
void graft_build_mobilenetv2(graft_builder *builder);
void graft_build_inceptionv3(graft_builder *builder);
void graft_build_nasnet(graft_builder *builder);
void graft_build_vit(graft_builder *builder);

/* input_ids(1,128), attention_mask(1,128), token_type_ids(1,128), int64
 * -> last_hidden_state(1,128,768), pooler_output(1,768) */
void graft_build_bert(graft_builder *builder);
/* The same architectures with two layers (and a small vocabulary), for tests that take seconds. */
void graft_build_bert_small(graft_builder *builder);
void graft_build_vit_small(graft_builder *builder);

/* x(16,1,hidden), h(1,hidden), c(1,hidden) -> h after the last step */
void graft_build_lstm256(graft_builder *builder);
void graft_build_lstm512(graft_builder *builder);
/* x(5,1,hidden), state(1,hidden) -> state after the last step */
void graft_build_nasrnn256(graft_builder *builder);
void graft_build_nasrnn512(graft_builder *builder);

/* Microcontrollers, as in MLPerf Tiny. */
/* x(1,1,49,10) -> probabilities(1,12) */
void graft_build_dscnn(graft_builder *builder);
/* x(1,3,32,32) -> probabilities(1,10) */
void graft_build_resnet8(graft_builder *builder);
/* x(1,3,96,96) -> probabilities(1,2) */
void graft_build_mobilenetv1(graft_builder *builder);
/* x(1,640) -> its reconstruction */
void graft_build_autoencoder(graft_builder *builder);
