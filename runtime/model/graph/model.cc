#include "runtime/model/graph/model.h"

#include "runtime/ir/families.h"
#include "runtime/model/graph/decoder.h"
#include "runtime/model/graph/encoder.h"
#include "runtime/model/graph/gpt.h"

namespace hyperrun {

Graph build_model(const ModelSpec& model, const ModelUse& use) {
  if (model.name == "encoder") return build_encoder(model, use);  // Dosovitskiy et al. 2020
  const ModelFamily& family = family_of(model);
  return family.learned_positions ? build_gpt2(model, use) : build_decoder(model, use, family);
}

}  // namespace hyperrun
