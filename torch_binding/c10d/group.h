// One group of torch.distributed, as this rank knows it.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <torch/csrc/distributed/c10d/Store.hpp>
#include <vector>

#include "core/request.h"
#include "torch_binding/engine_holder.h"

namespace fasthorovod::torch_binding {

/// The engine knows `id` already.
struct Group {
  std::shared_ptr<RunningEngine> running;  // owners: the holder, groups, calls
  core::GroupId id = core::kWorldGroup;
  int rank = 0;
  int size = 1;
  std::chrono::milliseconds time_limit{0};  // of operations that bring none
  std::string name;
  c10::intrusive_ptr<c10d::Store> meeting_store;  // where it met, and where groups split off it do
  std::vector<std::uint64_t> global_ranks;        // of torch; empty: 0, 1, ... size - 1
};

}  // namespace fasthorovod::torch_binding
