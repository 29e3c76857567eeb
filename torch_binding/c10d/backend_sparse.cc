#include <c10/util/Exception.h>

#include <algorithm>
#include <utility>

#include "torch_binding/c10d/argument_checks.h"
#include "torch_binding/c10d/backend.h"
#include "torch_binding/c10d/sparse_sum.h"

namespace fasthorovod::torch_binding {
namespace {

using c10d::OpType;

/// The second exchange runs when the first is done, in no order with anything else: so it goes by
/// messages, under tags of its own for each operation. Torch's tags are not negative, and those of
/// the monitored barrier are smaller.
std::uint32_t tag_of(std::uint64_t sequence, std::uint32_t part) {
  return 0xC0000000U | (static_cast<std::uint32_t>(sequence << 1U) & 0x3FFFFFFEU) | part;
}

/// Who exchanges, and until when.
struct Exchange {
  std::shared_ptr<SparseSum> sum;          // owners: the Work's functions and the messages
  std::shared_ptr<RunningEngine> running;  // owners: see Group
  core::GroupId group = core::kWorldGroup;
  int rank = 0;
  int size = 1;
  std::chrono::steady_clock::time_point deadline;

  core::Result<std::vector<ops::Handle>> operator()(std::uint64_t sequence) const {
    if (auto status = sum->read_headers(); !status) return std::move(status).error();
    std::vector<ops::Handle> handles;
    for (int peer = 0; peer < size; ++peer) {
      if (peer == rank) continue;
      for (const bool sends : {true, false}) {
        const SparseSum::Parts parts = sum->parts_of(sends ? rank : peer);
        for (const auto& [bytes, part] : {std::pair{parts.indices, 0U}, {parts.values, 1U}}) {
          if (bytes.empty()) continue;
          auto handle = start(peer, tag_of(sequence, part), bytes, sends);
          if (!handle) return std::move(handle).error();
          handles.push_back(*std::move(handle));
        }
      }
    }
    return handles;
  }

  core::Result<ops::Handle> start(int peer, std::uint32_t tag, std::span<std::byte> bytes,
                                  bool sends) const {
    const auto left =
        std::chrono::ceil<std::chrono::milliseconds>(deadline - std::chrono::steady_clock::now());
    ops::Message message;
    message.group = group;
    message.peer = peer;
    message.tag = tag;
    message.bytes = bytes;
    message.time_limit = std::max(left, std::chrono::milliseconds(1));
    message.keep_alive = sum;
    message.title = "part of an all_reduce of a sparse tensor";
    return sends ? running->engine->send(std::move(message))
                 : running->engine->receive(std::move(message));
  }
};

}  // namespace

c10::intrusive_ptr<c10d::Work> EngineBackend::allreduce_sparse(
    Tensors& tensors, const c10d::AllreduceOptions& options) {
  const at::Tensor& tensor = only(tensors, "all_reduce");
  const Reducing how = reducing(options.reduceOp);
  const bool average = how.reduction == core::Reduction::kAverage;
  TORCH_CHECK_VALUE((average || how.reduction == core::Reduction::kSum) && how.prescale == 1.0,
                    "sparse tensors can be summed (SUM) and averaged (AVG), nothing else");
  CallBuilder builder(OpType::ALLREDUCE, "fasthorovod:sparse_all_reduce", limit(options.timeout));
  builder.call.inputs = builder.call.results = tensors;
  auto sum = std::make_shared<SparseSum>(tensor, rank_, size_, average);
  builder.all_gather({sum->headers()}, sum->header());
  builder.call.next =
      Exchange{sum,   group_.running, group_.id,
               rank_, size_,          std::chrono::steady_clock::now() + builder.call.time_limit};
  builder.call.finish = [sum] { sum->finish(); };
  return submit(std::move(builder));
}

}  // namespace fasthorovod::torch_binding
