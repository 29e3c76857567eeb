// Messages between two ranks.
#include <utility>

#include "torch_binding/c10d/argument_checks.h"
#include "torch_binding/c10d/backend.h"

namespace fasthorovod::torch_binding {

using c10d::OpType;

c10::intrusive_ptr<c10d::Work> EngineBackend::submit_message(CallBuilder builder,
                                                             ops::Message message, bool sends) {
  check_open();
  message.group = group_.id;
  message.time_limit = builder.call.time_limit;
  message.keep_alive = builder.memory;
  auto work = c10::make_intrusive<EngineWork>(
      rank_, std::move(builder.call),
      [pending = pending_](const core::Status& status) { pending->settled(status); });
  ops::Engine& engine = *group_.running->engine;
  auto handle = sends ? engine.send(std::move(message)) : engine.receive(std::move(message));
  if (!handle) std::rethrow_exception(to_exception(handle.error()));
  pending_->began();
  work->start({*std::move(handle)}, *group_.running->completions);
  return work;
}

c10::intrusive_ptr<c10d::Work> EngineBackend::send(Tensors& tensors, int destination, int tag) {
  const at::Tensor& tensor = only(tensors, "send");
  (void)unit_of_bytes(tensor);
  CallBuilder builder(OpType::SEND, "fasthorovod:send", limit(c10d::kUnsetTimeout));
  builder.call.inputs = builder.call.results = tensors;
  const at::Tensor memory = builder.memory->read(tensor);
  ops::Message message;
  message.peer = destination;
  message.tag = checked_tag(tag, "send");
  message.bytes = output_bytes(memory);
  message.title = describe("send", tensor);
  return submit_message(std::move(builder), std::move(message), true);
}

c10::intrusive_ptr<c10d::Work> EngineBackend::recv(Tensors& tensors, int source, int tag) {
  const at::Tensor& tensor = only(tensors, "recv");
  (void)unit_of_bytes(tensor);
  const bool any = source < 0;
  CallBuilder builder(any ? OpType::RECVANYSOURCE : OpType::RECV,
                      any ? "fasthorovod:recvAnySource" : "fasthorovod:recv",
                      limit(c10d::kUnsetTimeout));
  builder.call.inputs = builder.call.results = tensors;
  const at::Tensor memory = builder.memory->write(tensor, false);
  ops::Message message;
  message.peer = any ? -1 : source;
  message.tag = checked_tag(tag, "recv");
  message.bytes = output_bytes(memory);
  message.title = describe("recv", tensor);
  return submit_message(std::move(builder), std::move(message), false);
}

c10::intrusive_ptr<c10d::Work> EngineBackend::recvAnysource(Tensors& tensors, int tag) {
  return recv(tensors, -1, tag);
}

}  // namespace fasthorovod::torch_binding
