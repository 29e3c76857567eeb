#include "tools/fasthorovod-bench/training_models.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>

namespace fasthorovod::tools {
namespace {

using testing::HasSubstr;

struct Known {
  std::size_t tensors = 0;
  std::uint64_t parameters = 0;
  double multiply_adds = 0;
};

// Published figures; the work of convolutions and linear layers, in billions of multiply-adds (of a
// token, for GPT-2).
const std::map<std::string_view, Known> kKnown{{"alexnet", {16, 61'100'840, 0.714}},
                                               {"vgg16", {32, 138'357'544, 15.47}},
                                               {"resnet50", {161, 25'557'032, 4.09}},
                                               {"gpt2-small", {148, 124'439'808, 0.1236}}};

class TrainingModels : public testing::TestWithParam<TrainingModel> {};

TEST_P(TrainingModels, HaveTheKnownParametersAndWork) {
  const Known& known = kKnown.at(GetParam().name);
  std::size_t tensors = 0;
  std::uint64_t parameters = 0;
  double work = 0;
  for (const Layer& layer : GetParam().layers()) {
    work += layer.work;
    for (const Parameter& parameter : layer.parameters) {
      ++tensors;
      parameters += parameter.elements;
    }
  }
  EXPECT_EQ(tensors, known.tensors);
  EXPECT_EQ(parameters, known.parameters);
  EXPECT_NEAR(work / 1e9, known.multiply_adds, known.multiply_adds * 0.005);
}

TEST_P(TrainingModels, GiveGradientsFromTheLastLayerToTheFirst) {
  const std::vector<Layer> layers = GetParam().layers();
  const std::vector<Gradient> gradients = backward_gradients(layers, 1);
  EXPECT_TRUE(std::ranges::is_sorted(gradients, {}, &Gradient::ready));
  EXPECT_GT(gradients.front().ready, 0);
  EXPECT_DOUBLE_EQ(gradients.back().ready, 1);
  EXPECT_EQ(gradients.back().name, layers.front().parameters.front().name);
  std::set<std::string> names;
  for (const Gradient& gradient : gradients) names.insert(gradient.name);
  EXPECT_EQ(names.size(), gradients.size());
}

TEST_P(TrainingModels, ShrinkByTheScaleAndKeepEveryTensor) {
  const std::vector<Layer> layers = GetParam().layers();
  const std::vector<Gradient> whole = backward_gradients(layers, 1);
  const std::vector<Gradient> shrunk = backward_gradients(layers, 1000);
  ASSERT_EQ(whole.size(), shrunk.size());
  for (std::size_t at = 0; at < whole.size(); ++at) {
    EXPECT_EQ(shrunk[at].elements, (whole[at].elements + 999) / 1000);
  }
}

INSTANTIATE_TEST_SUITE_P(All, TrainingModels,
                         testing::ValuesIn(training_models().begin(), training_models().end()),
                         [](const auto& model) {
                           std::string name(model.param.name);
                           std::erase(name, '-');
                           return name;
                         });

TEST(TrainingModelNames, AreListedWhenOneIsUnknown) {
  const auto model = find_training_model("vgg");
  ASSERT_FALSE(model);
  EXPECT_THAT(model.error().message, HasSubstr("'vgg' is none of alexnet, vgg16, resnet50, gpt2"));
  EXPECT_EQ(find_training_model("vgg16").value().name, "vgg16");
}

}  // namespace
}  // namespace fasthorovod::tools
