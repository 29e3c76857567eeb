#include "torch_binding/tensor_check.h"

#include <algorithm>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace fasthorovod::torch_binding {
namespace {

using core::DataType;

std::optional<DataType> wire_type_of(at::ScalarType type) {
  switch (type) {
    case at::kBool:
      return DataType::kBool;
    case at::kByte:
      return DataType::kUint8;
    case at::kChar:
      return DataType::kInt8;
    case at::kUInt16:
      return DataType::kUint16;
    case at::kShort:
      return DataType::kInt16;
    case at::kUInt32:
      return DataType::kUint32;
    case at::kInt:
      return DataType::kInt32;
    case at::kUInt64:
      return DataType::kUint64;
    case at::kLong:
      return DataType::kInt64;
    case at::kHalf:
      return DataType::kFloat16;
    case at::kBFloat16:
      return DataType::kBfloat16;
    case at::kFloat:
      return DataType::kFloat32;
    case at::kDouble:
      return DataType::kFloat64;
    default:
      return std::nullopt;
  }
}

core::Error refused(std::string sentence) {
  return {core::ErrorCode::kInvalidArgument, std::move(sentence)};
}

std::string supported_types() {
  std::string list;
  for (int value = 0; value < core::kDataTypeCount; ++value) {
    list.append(value == 0 ? "" : ", ");
    list.append(to_string(*core::data_type_from_wire(static_cast<std::uint8_t>(value))));
  }
  return list;
}

}  // namespace

core::Result<DataType> wire_type(const at::Tensor& tensor) {
  if (!tensor.defined()) {
    return refused("an undefined tensor cannot be communicated");
  }
  if (tensor.layout() != at::kStrided) {
    return refused(
        "sparse tensors (and other layouts than torch.strided) are not supported; "
        "densify the tensor first");
  }
  if (tensor.is_quantized()) {
    return refused("quantized tensors are not supported; dequantize the tensor first");
  }
  if (tensor.device().is_meta()) {
    return refused("a tensor on the meta device holds no values to communicate");
  }
  const std::optional<DataType> type = wire_type_of(tensor.scalar_type());
  if (!type) {
    const std::string name(c10::getDtypeNames(tensor.scalar_type()).first);
    return refused("tensors of type " + name + " are not supported; supported are " +
                   supported_types());
  }
  return *type;
}

bool elements_are_apart(const at::Tensor& tensor) {
  if (tensor.numel() == 0) {
    return true;
  }
  // Walks the dimensions from the narrowest stride up: each must step over everything the narrower
  // ones span.
  std::vector<std::pair<std::int64_t, std::int64_t>> stride_and_size;
  for (std::int64_t i = 0; i < tensor.dim(); ++i) {
    if (tensor.size(i) > 1) {
      stride_and_size.emplace_back(tensor.stride(i), tensor.size(i));
    }
  }
  std::sort(stride_and_size.begin(), stride_and_size.end());
  std::int64_t span = 1;
  for (const auto& [stride, size] : stride_and_size) {
    if (stride < span) {
      return false;
    }
    span += stride * (size - 1);
  }
  return true;
}

core::Status check_delayed(const std::string& name, const at::Tensor& tensor) {
  std::string wrong;
  if (!tensor.defined() || tensor.layout() != at::kStrided) {
    wrong = "is not a dense tensor";
  } else if (!tensor.device().is_cpu()) {
    wrong = "is on " + tensor.device().str();
  } else if (tensor.scalar_type() != at::kFloat) {
    wrong = "is of type " + std::string(c10::getDtypeNames(tensor.scalar_type()).first);
  } else if (!tensor.is_contiguous() || tensor.is_neg()) {
    wrong = "is not contiguous";
  }
  if (wrong.empty()) {
    return {};
  }
  return refused(name + " " + wrong +
                 "; DelayedOptimizer works with contiguous float32 parameters on the CPU for now");
}

}  // namespace fasthorovod::torch_binding
