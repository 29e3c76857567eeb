// All-reduces of engines whose ranks share hosts, however unevenly.
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <numeric>
#include <span>
#include <string>
#include <vector>

#include "test/ops/rank_group.h"

namespace fasthorovod::ops::testing {
namespace {

struct Hosts {
  std::vector<int> sizes;  // ranks of each host

  [[nodiscard]] int ranks() const { return std::accumulate(sizes.begin(), sizes.end(), 0); }
  [[nodiscard]] int host_of(int rank) const {
    int host = 0;
    for (int left = rank; left >= sizes[static_cast<std::size_t>(host)]; ++host) {
      left -= sizes[static_cast<std::size_t>(host)];
    }
    return host;
  }
  [[nodiscard]] GroupOptions options() const {
    return {.adjust = [hosts = *this](core::Config& config) {
      config.host_identity = "host-" + std::to_string(hosts.host_of(config.rank));
    }};
  }
};

float value_of(int rank, std::size_t index) {
  return static_cast<float>((static_cast<std::size_t>(rank) * 7 + index) % 13);
}

std::vector<float> values_of(int rank, std::size_t count) {
  std::vector<float> values(count);
  for (std::size_t i = 0; i < count; ++i) values[i] = value_of(rank, i);
  return values;
}

void expect_sum(const std::vector<float>& values, int size) {
  for (std::size_t i = 0; i < values.size(); ++i) {
    float sum = 0;
    for (int rank = 0; rank < size; ++rank) sum += value_of(rank, i);
    ASSERT_EQ(values[i], sum) << "element " << i << " of " << values.size();
  }
}

class EngineOnHosts : public ::testing::TestWithParam<Hosts> {};

TEST_P(EngineOnHosts, SumThroughTheNamedDoor) {
  run_as_threads(
      GetParam().ranks(),
      [](Engine& engine) {
        std::vector<std::vector<float>> tensors;
        for (const std::size_t count : {1UL, 5UL, 1000UL, 300'007UL, 3'000'001UL}) {
          tensors.push_back(values_of(engine.world().rank, count));
        }
        std::vector<Handle> handles;
        for (std::size_t i = 0; i < tensors.size(); ++i) {
          auto handle = engine.submit(allreduce_of("tensor " + std::to_string(i), tensors[i]));
          ASSERT_TRUE(handle) << handle.error().message;
          handles.push_back(*handle);
        }
        for (const Handle& handle : handles) {
          const core::Status status = handle.wait();
          ASSERT_TRUE(status) << status.error().message;
        }
        for (const auto& tensor : tensors) expect_sum(tensor, engine.world().size);
      },
      GetParam().options());
}

TEST_P(EngineOnHosts, SumThroughTheOrderedDoorManyTimes) {
  run_as_threads(
      GetParam().ranks(),
      [](Engine& engine) {
        std::vector<std::vector<float>> outputs;
        std::vector<std::vector<float>> inputs;
        std::vector<Handle> handles;
        for (std::size_t i = 0; i < 40; ++i) {
          inputs.push_back(values_of(engine.world().rank, 1 + i * i * 97));
          outputs.emplace_back(inputs.back().size());
        }
        for (std::size_t i = 0; i < inputs.size(); ++i) {
          OrderedOperation operation;
          operation.input = std::as_bytes(std::span(inputs[i]));
          operation.output = std::as_writable_bytes(std::span(outputs[i]));
          auto handle = engine.submit_ordered(std::move(operation));
          ASSERT_TRUE(handle) << handle.error().message;
          handles.push_back(*handle);
        }
        for (const Handle& handle : handles) {
          const core::Status status = handle.wait();
          ASSERT_TRUE(status) << status.error().message;
        }
        for (const auto& output : outputs) expect_sum(output, engine.world().size);
      },
      GetParam().options());
}

/// A buffer of a test, in the engine's arena or not.
struct Buffer {
  Buffer(Engine& engine, std::size_t count, bool shared)
      : memory(shared ? *engine.shared_memory(count * sizeof(float)) : nullptr),
        own(shared ? 0 : count),
        values(shared ? reinterpret_cast<float*>(memory.get()) : own.data(), count) {}

  std::shared_ptr<std::byte> memory;
  std::vector<float> own;
  std::span<float> values;
};

// Ranks differ in where theirs are.
TEST_P(EngineOnHosts, SumTensorsInSharedMemoryWithOthers) {
  run_as_threads(
      GetParam().ranks(),
      [](Engine& engine) {
        const auto rank = static_cast<std::size_t>(engine.world().rank);
        for (std::size_t mix = 0; mix < 8; ++mix) {
          for (const std::size_t count : {700UL, 300'007UL}) {
            const std::size_t own_mix = mix + rank * (mix < 4 ? 0 : mix);
            Buffer input(engine, count, own_mix % 2 == 1);
            Buffer output(engine, count, own_mix / 2 % 2 == 1);
            std::ranges::copy(values_of(engine.world().rank, count), input.values.begin());
            const bool in_place = own_mix % 3 == 0;
            OrderedOperation operation;
            operation.input = std::as_bytes(input.values);
            operation.output = std::as_writable_bytes(in_place ? input.values : output.values);
            expect_success(engine.submit_ordered(std::move(operation)));
            const std::span<float> result = in_place ? input.values : output.values;
            expect_sum({result.begin(), result.end()}, engine.world().size);
          }
        }
      },
      GetParam().options());
}

// Only the part between hosts goes over the network: on one host nothing does.
TEST_P(EngineOnHosts, SendNoMoreThanOneCopyAHost) {
  const std::vector<int>& sizes = GetParam().sizes;
  run_as_threads(
      GetParam().ranks(),
      [&sizes](Engine& engine) {
        constexpr std::size_t kCount = 1 << 20;
        std::vector<float> values = values_of(engine.world().rank, kCount);
        auto handle = engine.submit(allreduce_of("w", values));
        ASSERT_TRUE(handle);
        ASSERT_TRUE(handle->wait());
        const std::uint64_t sent = engine.statistics().bytes_sent;
        if (sizes.size() == 1) {
          EXPECT_EQ(sent, 0U);
        } else {
          EXPECT_LE(sent, 2 * kCount * sizeof(float) * 11 / 10);
        }
      },
      GetParam().options());
}

INSTANTIATE_TEST_SUITE_P(Uneven, EngineOnHosts,
                         ::testing::Values(Hosts{{2}}, Hosts{{4}}, Hosts{{1, 2}}, Hosts{{3, 1}},
                                           Hosts{{2, 2}}, Hosts{{1, 3, 2}}),
                         [](const auto& parameter) {
                           std::string name = "Hosts";
                           for (const int size : parameter.param.sizes)
                             name += std::to_string(size);
                           return name;
                         });

}  // namespace
}  // namespace fasthorovod::ops::testing
