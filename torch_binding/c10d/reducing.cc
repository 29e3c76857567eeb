#include "torch_binding/c10d/reducing.h"

#include <ATen/ops/view_as_real.h>
#include <c10/util/Exception.h>

namespace fasthorovod::torch_binding {
namespace {

using core::Reduction;

double factor_of(const c10d::ReduceOp& op) {
  const auto* supplement = dynamic_cast<c10d::PreMulSumSupplement*>(op.supplement_.get());
  TORCH_CHECK_VALUE(supplement != nullptr, "PREMUL_SUM without its factor");
  return supplement->tensor_factor.defined() ? supplement->tensor_factor.item<double>()
                                             : supplement->double_factor;
}

}  // namespace

Reducing reducing(const c10d::ReduceOp& op) {
  switch (op.op_) {
    case c10d::ReduceOp::SUM:
      return {Reduction::kSum};
    case c10d::ReduceOp::AVG:
      return {Reduction::kAverage};
    case c10d::ReduceOp::PRODUCT:
      return {Reduction::kProduct};
    case c10d::ReduceOp::MIN:
      return {Reduction::kMin};
    case c10d::ReduceOp::MAX:
      return {Reduction::kMax};
    case c10d::ReduceOp::PREMUL_SUM:
      return {Reduction::kSum, factor_of(op)};
    case c10d::ReduceOp::BAND:
      return {Reduction::kBitAnd};
    case c10d::ReduceOp::BOR:
      return {Reduction::kBitOr};
    case c10d::ReduceOp::BXOR:
      return {Reduction::kBitXor};
    case c10d::ReduceOp::UNUSED:
      break;
  }
  TORCH_CHECK_VALUE(false,
                    "no reduction was chosen; there are SUM, AVG, PREMUL_SUM, PRODUCT, MIN, ",
                    "MAX, BAND, BOR and BXOR");
}

at::Tensor as_values(const at::Tensor& tensor, const Reducing& how) {
  if (!tensor.defined() || !tensor.is_complex()) return tensor;
  TORCH_CHECK_VALUE(how.reduction == Reduction::kSum || how.reduction == Reduction::kAverage,
                    "complex numbers can be summed and averaged, but have no ",
                    to_string(how.reduction));
  return at::view_as_real(tensor.resolve_conj());
}

}  // namespace fasthorovod::torch_binding
