// Models that are trained over networks, as what an all-reduce sees of them: how large their
// gradients are, and how the computation of a step is spread between them. Pure.
//
// Sizes are those of the models' papers as torchvision and Hugging Face build them (AlexNet, VGG16,
// ResNet-50 for 1000 classes of images with 224 x 224 pixels; GPT-2 with 124 million parameters and
// the token embedding tied to the output). Work counts multiply-adds of the layers with weights in
// one forward pass, of an image or of a token; batch norm, activations and the scores of attention
// are left out.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/result.h"

namespace fasthorovod::tools {

struct Parameter {
  std::string name;
  std::uint64_t elements = 0;
};

/// Its gradients are there when its part of the backward pass is.
struct Layer {
  double work = 0;
  std::vector<Parameter> parameters;  // may be none
};

struct TrainingModel {
  std::string_view name;
  std::vector<Layer> (*layers)();  // in the order of the forward pass
};

std::span<const TrainingModel> training_models();

/// An error lists the names.
core::Result<TrainingModel> find_training_model(std::string_view name);

struct Gradient {
  std::string name;
  std::uint64_t elements = 0;
  double ready = 0;  // the part of the backward pass after which it is there: above 0, at most 1
};

/// In the order of the backward pass. `scale`, at least 1, divides the elements, rounding up.
std::vector<Gradient> backward_gradients(const std::vector<Layer>& layers, std::uint64_t scale);

}  // namespace fasthorovod::tools
