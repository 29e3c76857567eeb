#include "tools/fasthorovod-bench/training_models.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <numeric>
#include <optional>
#include <ranges>

namespace fasthorovod::tools {
namespace {

/// A convolution with `side` x `side` outputs a channel.
struct Convolution {
  std::uint64_t outputs = 0;
  std::uint64_t inputs = 0;
  std::uint64_t kernel = 0;
  std::uint64_t side = 0;

  [[nodiscard]] std::uint64_t weights() const { return outputs * inputs * kernel * kernel; }
  [[nodiscard]] double work() const { return static_cast<double>(weights() * side * side); }
};

Layer biased(const std::string& name, const Convolution& convolution) {
  return {convolution.work(),
          {{name + ".weight", convolution.weights()}, {name + ".bias", convolution.outputs}}};
}

Layer unbiased(const std::string& name, const Convolution& convolution) {
  return {convolution.work(), {{name + ".weight", convolution.weights()}}};
}

Layer linear(const std::string& name, std::uint64_t outputs, std::uint64_t inputs) {
  return {static_cast<double>(outputs * inputs),
          {{name + ".weight", outputs * inputs}, {name + ".bias", outputs}}};
}

/// Batch norm or layer norm.
Layer norm(const std::string& name, std::uint64_t width) {
  return {0, {{name + ".weight", width}, {name + ".bias", width}}};
}

std::vector<Layer> alexnet() {
  return {biased("features.0", {64, 3, 11, 55}),    biased("features.3", {192, 64, 5, 27}),
          biased("features.6", {384, 192, 3, 13}),  biased("features.8", {256, 384, 3, 13}),
          biased("features.10", {256, 256, 3, 13}), linear("classifier.1", 4096, 9216),
          linear("classifier.4", 4096, 4096),       linear("classifier.6", 1000, 4096)};
}

std::vector<Layer> vgg16() {
  // Channels and side of each convolution; pooling halves the side.
  constexpr std::array<std::pair<std::uint64_t, std::uint64_t>, 13> kConvolutions{{{64, 224},
                                                                                   {64, 224},
                                                                                   {128, 112},
                                                                                   {128, 112},
                                                                                   {256, 56},
                                                                                   {256, 56},
                                                                                   {256, 56},
                                                                                   {512, 28},
                                                                                   {512, 28},
                                                                                   {512, 28},
                                                                                   {512, 14},
                                                                                   {512, 14},
                                                                                   {512, 14}}};
  std::vector<Layer> layers;
  std::uint64_t inputs = 3;
  for (const auto& [outputs, side] : kConvolutions) {
    layers.push_back(biased(fmt::format("features.{}", layers.size()), {outputs, inputs, 3, side}));
    inputs = outputs;
  }
  layers.push_back(linear("classifier.0", 4096, 25088));
  layers.push_back(linear("classifier.3", 4096, 4096));
  layers.push_back(linear("classifier.6", 1000, 4096));
  return layers;
}

/// A bottleneck block of ResNet: 1 x 1, 3 x 3 (with the stride), 1 x 1.
void add_bottleneck(std::vector<Layer>& layers, const std::string& name, std::uint64_t inputs,
                    std::uint64_t width, std::uint64_t side, bool first) {
  const std::uint64_t outputs = 4 * width;
  // The first block of a stage but of the first one halves the side in its second convolution.
  const std::uint64_t side_before = first && width > 64 ? 2 * side : side;
  layers.push_back(unbiased(name + ".conv1", {width, inputs, 1, side_before}));
  layers.push_back(norm(name + ".bn1", width));
  layers.push_back(unbiased(name + ".conv2", {width, width, 3, side}));
  layers.push_back(norm(name + ".bn2", width));
  layers.push_back(unbiased(name + ".conv3", {outputs, width, 1, side}));
  layers.push_back(norm(name + ".bn3", outputs));
  if (!first) return;
  layers.push_back(unbiased(name + ".downsample.0", {outputs, inputs, 1, side}));
  layers.push_back(norm(name + ".downsample.1", outputs));
}

std::vector<Layer> resnet50() {
  constexpr std::array<int, 4> kBlocks{3, 4, 6, 3};
  std::vector<Layer> layers{unbiased("conv1", {64, 3, 7, 112}), norm("bn1", 64)};
  std::uint64_t inputs = 64;
  std::uint64_t width = 64;
  std::uint64_t side = 56;
  for (std::size_t stage = 0; stage < kBlocks.size(); ++stage) {
    for (int block = 0; block < kBlocks[stage]; ++block) {
      add_bottleneck(layers, fmt::format("layer{}.{}", stage + 1, block), inputs, width, side,
                     block == 0);
      inputs = 4 * width;
    }
    width *= 2;
    side /= 2;
  }
  layers.push_back(linear("fc", 1000, 2048));
  return layers;
}

std::vector<Layer> gpt2_small() {
  constexpr std::uint64_t kWidth = 768;
  constexpr std::uint64_t kTokens = 50257;
  std::vector<Layer> layers{{0, {{"wte.weight", kTokens * kWidth}}},
                            {0, {{"wpe.weight", 1024 * kWidth}}}};
  for (int block = 0; block < 12; ++block) {
    const std::string name = fmt::format("h.{}", block);
    layers.push_back(norm(name + ".ln_1", kWidth));
    layers.push_back(linear(name + ".attn.c_attn", 3 * kWidth, kWidth));
    layers.push_back(linear(name + ".attn.c_proj", kWidth, kWidth));
    layers.push_back(norm(name + ".ln_2", kWidth));
    layers.push_back(linear(name + ".mlp.c_fc", 4 * kWidth, kWidth));
    layers.push_back(linear(name + ".mlp.c_proj", kWidth, 4 * kWidth));
  }
  layers.push_back(norm("ln_f", kWidth));
  // The output uses the weights of wte, whose gradient is complete only at the very end.
  layers.push_back({static_cast<double>(kTokens * kWidth), {}});
  return layers;
}

constexpr std::array<TrainingModel, 4> kModels{
    {{"alexnet", alexnet}, {"vgg16", vgg16}, {"resnet50", resnet50}, {"gpt2-small", gpt2_small}}};

}  // namespace

std::span<const TrainingModel> training_models() { return kModels; }

core::Result<TrainingModel> find_training_model(std::string_view name) {
  const auto found = std::ranges::find(kModels, name, &TrainingModel::name);
  if (found != kModels.end()) return *found;
  std::vector<std::string_view> names;
  names.reserve(kModels.size());
  for (const TrainingModel& model : kModels) names.push_back(model.name);
  return core::Error{core::ErrorCode::kInvalidArgument,
                     fmt::format("'{}' is none of {}", name, fmt::join(names, ", "))};
}

std::vector<Gradient> backward_gradients(const std::vector<Layer>& layers, std::uint64_t scale) {
  const double whole =
      std::accumulate(layers.begin(), layers.end(), 0.0,
                      [](double sum, const Layer& layer) { return sum + layer.work; });
  std::vector<Gradient> gradients;
  double done = 0;
  for (const Layer& layer : std::views::reverse(layers)) {
    done += layer.work;
    for (const Parameter& parameter : std::views::reverse(layer.parameters)) {
      gradients.push_back({parameter.name, (parameter.elements + scale - 1) / scale, done / whole});
    }
  }
  return gradients;
}

}  // namespace fasthorovod::tools
