// The door of torch.distributed: one group's backend, a translation of torch's calls into
// operations of the engine. It decides nothing about data; the engine numbers the operations inside
// the call.
//
// Thread: any. The memory of tensors is lent until the Work is done; the caller may drop the Work.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <torch/csrc/distributed/c10d/Backend.hpp>
#include <vector>

#include "ops/ordered.h"
#include "torch_binding/c10d/call_builder.h"
#include "torch_binding/c10d/group.h"
#include "torch_binding/c10d/pending_works.h"
#include "torch_binding/engine_holder.h"

namespace fasthorovod::torch_binding {

inline constexpr const char* kBackendName = "fasthorovod";

class EngineBackend final : public c10d::Backend {
 public:
  using Work = c10d::Work;
  using WorkPtr = c10::intrusive_ptr<c10d::Work>;
  using Tensors = std::vector<at::Tensor>;
  using TensorLists = std::vector<Tensors>;

  /// Leaves `holder` when it goes.
  EngineBackend(Group group, EngineHolder& holder);
  ~EngineBackend() override;

  const std::string getBackendName() const override { return kBackendName; }
  c10::intrusive_ptr<Options> getBackendOptions() override;

  bool supportsSplitting() const override { return true; }
  /// For the members of `ranks` (of this group) their backend, for others null.
  c10::intrusive_ptr<Backend> split(const c10::intrusive_ptr<c10d::Store>& store,
                                    const std::vector<int>& ranks,
                                    const c10::intrusive_ptr<Options>& options) override;

  WorkPtr broadcast(Tensors& tensors, const c10d::BroadcastOptions& options) override;
  WorkPtr allreduce(Tensors& tensors, const c10d::AllreduceOptions& options) override;
  WorkPtr allreduce_coalesced(Tensors& tensors,
                              const c10d::AllreduceCoalescedOptions& options) override;
  WorkPtr allreduce_sparse(Tensors& tensors, const c10d::AllreduceOptions& options) override;
  WorkPtr reduce(Tensors& tensors, const c10d::ReduceOptions& options) override;
  WorkPtr allgather(TensorLists& outputs, Tensors& inputs,
                    const c10d::AllgatherOptions& options) override;
  WorkPtr _allgather_base(at::Tensor& output, at::Tensor& input,
                          const c10d::AllgatherOptions& options) override;
  WorkPtr allgather_coalesced(TensorLists& outputs, Tensors& inputs,
                              const c10d::AllgatherOptions& options) override;
  WorkPtr allgather_into_tensor_coalesced(Tensors& outputs, Tensors& inputs,
                                          const c10d::AllgatherOptions& options) override;
  WorkPtr gather(TensorLists& outputs, Tensors& inputs,
                 const c10d::GatherOptions& options) override;
  WorkPtr gather_into_tensor(at::Tensor& output, at::Tensor& input,
                             const c10d::GatherOptions& options) override;
  WorkPtr scatter(Tensors& outputs, TensorLists& inputs,
                  const c10d::ScatterOptions& options) override;
  WorkPtr reduce_scatter(Tensors& outputs, TensorLists& inputs,
                         const c10d::ReduceScatterOptions& options) override;
  WorkPtr _reduce_scatter_base(at::Tensor& output, at::Tensor& input,
                               const c10d::ReduceScatterOptions& options) override;
  WorkPtr reduce_scatter_tensor_coalesced(Tensors& outputs, Tensors& inputs,
                                          const c10d::ReduceScatterOptions& options) override;
  WorkPtr alltoall_base(at::Tensor& output, at::Tensor& input, std::vector<int64_t>& output_splits,
                        std::vector<int64_t>& input_splits,
                        const c10d::AllToAllOptions& options) override;
  WorkPtr alltoall(Tensors& outputs, Tensors& inputs,
                   const c10d::AllToAllOptions& options) override;
  WorkPtr send(Tensors& tensors, int destination, int tag) override;
  WorkPtr recv(Tensors& tensors, int source, int tag) override;
  WorkPtr recvAnysource(Tensors& tensors, int tag) override;
  WorkPtr barrier(const c10d::BarrierOptions& options) override;
  void monitoredBarrier(const c10d::BarrierOptions& options, bool wait_all_ranks) override;

  uint64_t getSequenceNumberForGroup() override;
  void setTimeout(std::chrono::milliseconds timeout) override { time_limit_ = timeout; }
  void waitForPendingWorks() override;
  void enableCollectivesTiming() override {}
  c10d::ErrorType getError() override;

  /// Fails what is pending; later calls fail at once, and so do those of the other members.
  void abort() override;
  /// Fails what is pending; later calls fail at once. Gives the engine back.
  void shutdown() override;

 private:
  [[nodiscard]] std::chrono::milliseconds limit(std::chrono::milliseconds given) const;
  c10::intrusive_ptr<EngineWork> make_work(Call call);
  WorkPtr submit(CallBuilder builder);
  WorkPtr run(CallBuilder builder);
  WorkPtr submit_message(CallBuilder builder, ops::Message message, bool sends);
  WorkPtr submit_empty(int peer, std::uint32_t tag, std::chrono::milliseconds time_limit,
                       bool sends);
  void pass_barrier(std::chrono::milliseconds time_limit);
  /// Who does not come to the monitored barrier in time: the first of them, or all.
  std::vector<int> absent_ranks(std::chrono::milliseconds time_limit, bool all);
  void check_open() const;

  const std::shared_ptr<PendingWorks> pending_;  // owners: this and the Works not yet settled
  const Group group_;
  EngineHolder& holder_;
  std::atomic<std::chrono::milliseconds> time_limit_;
  std::mutex order_;            // so that our numbers and the engine's have one order
  std::uint64_t sequence_ = 0;  // guarded by order_
  std::atomic<bool> closed_{false};
  std::atomic<bool> left_{false};
};

}  // namespace fasthorovod::torch_binding
