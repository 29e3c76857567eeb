#include "torch_binding/shared_tensors.h"

#include <ATen/ops/from_blob.h>
#include <c10/core/CPUAllocator.h>
#include <pybind11/stl.h>
#include <torch/csrc/utils/pybind.h>

#include <atomic>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "torch_binding/python_calls.h"

namespace py = pybind11;

namespace fasthorovod::torch_binding {
namespace {

using Block = std::shared_ptr<std::byte>;

/// Serves allocations of a size and more from the arena of the engine that runs, whichever door it
/// runs for; everything else, and what finds no room there, goes to the allocator before it. Torch
/// may keep the address of an allocator for ever, so there is one for the life of the process, and
/// it is put before torch's own when it is first asked for.
///
/// Thread: any.
class SharedAllocator final : public c10::Allocator {
 public:
  /// Made with the interpreter lock held.
  static SharedAllocator& installed() {
    static auto* const instance = [] {
      auto* const allocator = new SharedAllocator(*c10::GetCPUAllocator());
      c10::SetCPUAllocator(allocator);
      return allocator;
    }();
    return *instance;
  }

  /// 0: nothing is served from the arena. Returns what it was before.
  std::size_t serve_from(std::size_t bytes) { return smallest_.exchange(bytes); }

  [[nodiscard]] std::uint64_t shared_bytes() const { return shared_.load(); }
  [[nodiscard]] std::uint64_t missed_bytes() const { return missed_.load(); }

  c10::DataPtr allocate(std::size_t bytes) override {
    const std::size_t smallest = smallest_.load();
    if (smallest == 0 || bytes < smallest) {
      return before_.allocate(bytes);
    }
    Block block = find_room(bytes);
    (block == nullptr ? missed_ : shared_) += bytes;
    if (block == nullptr) {
      return before_.allocate(bytes);
    }
    std::byte* const memory = block.get();
    const auto let_go = [](void* held) { delete static_cast<Block*>(held); };
    return {memory, new Block(std::move(block)), let_go, c10::Device(c10::kCPU)};
  }

  void copy_data(void* to, const void* from, std::size_t bytes) const override {
    default_copy_data(to, from, bytes);
  }

 private:
  explicit SharedAllocator(c10::Allocator& before) : before_(before) {}

  static Block find_room(std::size_t bytes) {
    const std::shared_ptr<RunningEngine> running = holder().running();
    if (running == nullptr) {
      return nullptr;
    }
    core::Result<Block> memory = running->engine->shared_memory(bytes);
    return memory ? *std::move(memory) : nullptr;
  }

  c10::Allocator& before_;
  std::atomic<std::size_t> smallest_{0};
  std::atomic<std::uint64_t> shared_{0};
  std::atomic<std::uint64_t> missed_{0};
};

at::Tensor empty_shared(const std::vector<std::int64_t>& sizes, at::ScalarType type) {
  const std::shared_ptr<RunningEngine> running = holder().running();
  if (running == nullptr) {
    throw py::value_error(
        "FastHorovod is not initialised in this process; call hvd.init() first, or "
        "torch.distributed.init_process_group(\"fasthorovod\")");
  }
  std::uint64_t bytes = c10::elementSize(type);
  for (const std::int64_t size : sizes) {
    if (size < 0 || __builtin_mul_overflow(bytes, static_cast<std::uint64_t>(size), &bytes)) {
      throw py::value_error("empty_shared: sizes must not be negative, and fit into memory");
    }
  }
  core::Result<Block> memory = [&] {
    const py::gil_scoped_release release;
    return running->engine->shared_memory(bytes);
  }();
  if (!memory) {
    PyErr_SetString(PyExc_MemoryError, memory.error().message.c_str());
    throw py::error_already_set();
  }
  std::byte* const first = memory->get();
  const auto let_go = [block = *std::move(memory)](void*) mutable { block.reset(); };
  return at::from_blob(first, sizes, let_go, at::TensorOptions(type));
}

}  // namespace

void bind_shared_tensors(py::module_& module) {
  module.def("empty_shared", &empty_shared);
  module.def("share_allocations", [](std::size_t smallest) {
    return SharedAllocator::installed().serve_from(smallest);
  });
  module.def("shared_allocations", [] {
    const SharedAllocator& allocator = SharedAllocator::installed();
    return std::pair(allocator.shared_bytes(), allocator.missed_bytes());
  });
}

}  // namespace fasthorovod::torch_binding
