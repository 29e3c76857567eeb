#include "torch_binding/c10d/host_memory.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/empty.h>
#include <c10/core/impl/VirtualGuardImpl.h>
#include <c10/util/Exception.h>

#include <string>

#include "torch_binding/tensor_check.h"

namespace fasthorovod::torch_binding {
namespace {

bool lies_in_order(const at::Tensor& tensor) {
  return tensor.device().is_cpu() && tensor.is_contiguous() && !tensor.is_neg() &&
         !tensor.is_conj();
}

at::Tensor on_host(at::IntArrayRef sizes, const at::Tensor& like) {
  return at::empty(sizes, like.options().device(at::kCPU).memory_format(std::nullopt));
}

// What other streams still do with the tensor must end before the engine's threads write it.
void wait_for_device(const at::Tensor& tensor) {
  if (tensor.device().is_cpu()) return;
  const c10::impl::VirtualGuardImpl guard(tensor.device().type());
  guard.synchronizeStream(guard.getStream(tensor.device()));
}

std::vector<at::Tensor> slices_of(const at::Tensor& flat, const std::vector<at::Tensor>& like) {
  std::vector<at::Tensor> slices;
  std::int64_t at = 0;
  for (const at::Tensor& tensor : like) {
    slices.push_back(flat.narrow(0, at, tensor.numel()).view(tensor.sizes()));
    at += tensor.numel();
  }
  return slices;
}

at::Tensor flat_for(const std::vector<at::Tensor>& tensors) {
  std::int64_t total = 0;
  for (const at::Tensor& tensor : tensors) {
    TORCH_CHECK_VALUE(tensor.scalar_type() == tensors.front().scalar_type(),
                      "the tensors of one list must be of one type, but there are ",
                      tensors.front().scalar_type(), " and ", tensor.scalar_type());
    total += tensor.numel();
  }
  return on_host({total}, tensors.front());
}

}  // namespace

WireUnit unit_of_values(const at::Tensor& tensor) {
  auto type = wire_type(tensor);
  TORCH_CHECK_VALUE(type, type.error().message);
  return {*type, 1};
}

WireUnit unit_of_bytes(const at::Tensor& tensor) {
  if (auto type = wire_type(tensor)) return {*type, 1};
  const bool bytes_will_do = tensor.defined() && tensor.layout() == at::kStrided &&
                             !tensor.is_quantized() && !tensor.device().is_meta();
  if (!bytes_will_do) return unit_of_values(tensor);
  return {core::DataType::kUint8, static_cast<std::uint64_t>(tensor.element_size())};
}

std::span<const std::byte> input_bytes(const at::Tensor& memory) {
  return {static_cast<const std::byte*>(memory.const_data_ptr()), memory.nbytes()};
}

std::span<std::byte> output_bytes(const at::Tensor& memory) {
  return {static_cast<std::byte*>(memory.mutable_data_ptr()), memory.nbytes()};
}

void HostMemory::copy_out() const {
  const at::NoGradGuard no_grad;
  for (const auto& [target, source] : copies_) target.copy_(source);
}

at::Tensor HostMemory::keep(at::Tensor memory) {
  all_.push_back(memory);
  return memory;
}

at::Tensor HostMemory::read(const at::Tensor& tensor) {
  const at::NoGradGuard no_grad;
  if (lies_in_order(tensor)) return keep(tensor.detach());
  at::Tensor copy = on_host(tensor.sizes(), tensor);
  copy.copy_(tensor);
  return keep(std::move(copy));
}

at::Tensor HostMemory::write(const at::Tensor& tensor, bool keep_values) {
  const at::NoGradGuard no_grad;
  TORCH_CHECK_VALUE(elements_are_apart(tensor),
                    "a tensor whose elements share memory (an expanded one) cannot be written; "
                    "pass a clone() of it");
  if (lies_in_order(tensor)) return keep(tensor.detach());
  wait_for_device(tensor);
  at::Tensor memory = on_host(tensor.sizes(), tensor);
  if (keep_values) memory.copy_(tensor);
  copies_.emplace_back(tensor.detach(), memory);
  return keep(std::move(memory));
}

at::Tensor HostMemory::read_all(const std::vector<at::Tensor>& tensors) {
  if (tensors.size() == 1) return read(tensors.front());
  const at::NoGradGuard no_grad;
  at::Tensor flat = flat_for(tensors);
  const std::vector<at::Tensor> slices = slices_of(flat, tensors);
  for (std::size_t i = 0; i < tensors.size(); ++i) slices[i].copy_(tensors[i]);
  return keep(std::move(flat));
}

at::Tensor HostMemory::write_all(const std::vector<at::Tensor>& tensors) {
  if (tensors.size() == 1) return write(tensors.front(), false);
  const at::NoGradGuard no_grad;
  at::Tensor flat = flat_for(tensors);
  const std::vector<at::Tensor> slices = slices_of(flat, tensors);
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    TORCH_CHECK_VALUE(elements_are_apart(tensors[i]),
                      "a tensor whose elements share memory (an expanded one) cannot be written; "
                      "pass a clone() of it");
    wait_for_device(tensors[i]);
    copies_.emplace_back(tensors[i].detach(), slices[i]);
  }
  return keep(std::move(flat));
}

at::Tensor HostMemory::apart(at::Tensor read, const at::Tensor& written) {
  const at::NoGradGuard no_grad;
  if (read.is_alias_of(written)) return keep(read.clone());
  return read;
}

}  // namespace fasthorovod::torch_binding
