#include "torch_binding/c10d/sparse_sum.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/sparse_coo_tensor.h>
#include <ATen/ops/zeros.h>
#include <c10/util/Exception.h>

#include <algorithm>
#include <string>
#include <utility>

#include "torch_binding/c10d/host_memory.h"

namespace fasthorovod::torch_binding {
namespace {

// A header: element type, dimensions that are sparse, dimensions that are dense, elements, and the
// shape, filled up with zeros.
constexpr std::int64_t kType = 0;
constexpr std::int64_t kSparse = 1;
constexpr std::int64_t kDense = 2;
constexpr std::int64_t kElements = 3;
constexpr std::int64_t kShape = 4;
constexpr std::int64_t kMostDimensions = 28;
constexpr std::int64_t kLength = kShape + kMostDimensions;

at::Tensor header_of(const at::Tensor& coalesced) {
  at::Tensor header = at::zeros({kLength}, at::kLong);
  auto* const fields = header.mutable_data_ptr<std::int64_t>();
  fields[kType] = static_cast<std::int64_t>(coalesced.scalar_type());
  fields[kSparse] = coalesced.sparse_dim();
  fields[kDense] = coalesced.dense_dim();
  fields[kElements] = coalesced._nnz();
  std::ranges::copy(coalesced.sizes(), fields + kShape);
  return header;
}

std::string words(const std::int64_t* header) {
  const auto type = static_cast<at::ScalarType>(header[kType]);
  const std::int64_t dimensions = header[kSparse] + header[kDense];
  return c10::str("a sparse tensor of ", c10::getDtypeNames(type).first, " with shape ",
                  at::IntArrayRef(header + kShape, static_cast<std::size_t>(dimensions)), ", ",
                  header[kSparse], " of its dimensions sparse");
}

}  // namespace

SparseSum::SparseSum(at::Tensor tensor, int rank, int size, bool average)
    : tensor_(std::move(tensor)), rank_(rank), size_(size), average_(average) {
  TORCH_CHECK_VALUE(tensor_.layout() == at::kSparse, "all_reduce of a sparse tensor is for layout ",
                    at::kSparse, ", not ", tensor_.layout(), "; convert it with to_sparse()");
  TORCH_CHECK_VALUE(tensor_.dim() <= kMostDimensions, "a sparse tensor with ", tensor_.dim(),
                    " dimensions; at most ", kMostDimensions, " are allowed");
  const at::NoGradGuard no_grad;
  const at::Tensor own = tensor_.coalesce();
  header_ = header_of(own);
  headers_ = at::empty({size_, kLength}, at::kLong);
  indices_.resize(static_cast<std::size_t>(size_));
  values_.resize(static_cast<std::size_t>(size_));
  const auto at_rank = static_cast<std::size_t>(rank_);
  indices_[at_rank] = own._indices().to(at::kCPU).contiguous();
  values_[at_rank] = own._values().to(at::kCPU).contiguous();
}

core::Status SparseSum::check_header(int rank) const {
  const std::int64_t* const own = header_.const_data_ptr<std::int64_t>();
  const std::int64_t* const other = headers_.const_data_ptr<std::int64_t>() + rank * kLength;
  const bool alike = std::equal(own, own + kElements, other) &&
                     std::equal(own + kShape, own + kLength, other + kShape);
  if (alike) return {};
  return core::Error{core::ErrorCode::kMismatch,
                     c10::str("rank ", rank, " of the group called all_reduce with ", words(other),
                              ", but this rank with ", words(own)),
                     rank};
}

core::Status SparseSum::read_headers() {
  for (int rank = 0; rank < size_; ++rank) {
    if (core::Status status = check_header(rank); !status) return status;
  }
  for (int rank = 0; rank < size_; ++rank) {
    const auto index = static_cast<std::size_t>(rank);
    if (rank == rank_) continue;
    const std::int64_t elements =
        headers_.const_data_ptr<std::int64_t>()[rank * kLength + kElements];
    const at::Tensor& own = values_[static_cast<std::size_t>(rank_)];
    std::vector<std::int64_t> shape = own.sizes().vec();
    shape.front() = elements;
    indices_[index] = at::empty({tensor_.sparse_dim(), elements}, at::kLong);
    values_[index] = at::empty(shape, own.options());
  }
  return {};
}

SparseSum::Parts SparseSum::parts_of(int rank) const {
  const auto index = static_cast<std::size_t>(rank);
  return {output_bytes(indices_[index]), output_bytes(values_[index])};
}

void SparseSum::finish() {
  const at::NoGradGuard no_grad;
  at::Tensor values = at::cat(values_);
  const at::Tensor indices = at::cat(indices_, 1);
  at::Tensor sum = at::sparse_coo_tensor(indices, values, tensor_.sizes()).coalesce();
  if (average_) sum = sum.div(size_);
  tensor_.copy_(sum);
}

}  // namespace fasthorovod::torch_binding
