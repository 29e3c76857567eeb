// Torch tensors into submissions of the engine, and results back into tensors.
//
// The engine reads and writes host memory in logical order. A tensor that is laid out like that is
// lent as it is; any other (strided, expanded, channels_last, on a GPU) goes through a copy, and
// results are copied back by finish(). Aliases without autograd history are lent, never the
// caller's object: the engine's threads then free no Python object, and need no interpreter lock.
//
// Thread: one at a time, except wait_for() and done(), which any thread may call at any time.
#pragma once

#include <ATen/core/Tensor.h>

#include <chrono>
#include <string>
#include <vector>

#include "core/codec_choice.h"
#include "core/reduction.h"
#include "core/result.h"
#include "ops/engine.h"

namespace fasthorovod::torch_binding {

/// What an all-reduce does to the values.
struct ReduceOptions {
  core::Reduction reduction = core::Reduction::kAverage;
  double prescale = 1.0;
  double postscale = 1.0;
  std::vector<core::CodecChoice> codecs{};  // one a tensor
};

/// Whether results go into the tensors given or into new ones.
enum class Place { kNew, kInPlace };

/// The engine that runs an operation, and the process set whose ranks take part.
struct Among {
  ops::Engine& engine;
  core::GroupId set = core::kWorldGroup;
};

struct Buffers;

class Operation final {
 public:
  /// One all-reduce a tensor; with `bundle`, one that runs them together (names.size() ==
  /// tensors.size()).
  static core::Result<Operation> allreduce(const Among& among,
                                           const std::vector<std::string>& names,
                                           const std::vector<at::Tensor>& tensors, Place place,
                                           const ReduceOptions& options, const std::string& bundle);
  /// `root`: a rank of the world.
  static core::Result<Operation> broadcast(const Among& among, const std::string& name,
                                           const at::Tensor& tensor, Place place, int root);
  static core::Result<Operation> allgather(const Among& among, const std::string& name,
                                           const at::Tensor& tensor);
  static core::Result<Operation> barrier(const Among& among, const std::string& name);
  static core::Result<Operation> join(ops::Engine& engine, const std::string& name);
  /// Adds a process set of these ranks, or removes it (kAddGroup, kRemoveGroup).
  static core::Result<Operation> change_sets(ops::Engine& engine, const std::string& name,
                                             core::OpKind change, std::vector<int> ranks);

  [[nodiscard]] bool done() const;

  /// Blocks until done or for `limit`. False: not done.
  [[nodiscard]] bool wait_for(std::chrono::milliseconds limit) const;

  /// When done: puts the results where they belong. The first error of its tensors, if any failed.
  core::Status finish();

  /// After a successful finish(): one tensor each, in the order given. Undefined: use the tensor
  /// that was given.
  [[nodiscard]] const std::vector<at::Tensor>& results() const { return results_; }

  /// join() only, when done: the rank that joined last.
  [[nodiscard]] int last_joined() const;

  /// A new process set only, when done: its number.
  [[nodiscard]] core::GroupId set() const;

 private:
  Operation() = default;
  static core::Result<Operation> submit(ops::Engine& engine, core::Request request);

  std::vector<std::shared_ptr<Buffers>> buffers_;  // owners: this and the engine, one a tensor
  std::vector<ops::Handle> handles_;
  std::vector<at::Tensor> results_;
};

}  // namespace fasthorovod::torch_binding
