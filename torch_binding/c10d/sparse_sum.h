// The sum of one sparse tensor (torch.sparse_coo) a rank. How many elements the others have is not
// known at first, so it takes two exchanges: headers, then indices and values from each rank to
// each. All ranks add in rank order and get the same bits.
//
// Thread: one at a time.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "core/result.h"

namespace fasthorovod::torch_binding {

class SparseSum final {
 public:
  /// `average` divides the sum by `size`, the number of ranks. ValueError when `tensor` has another
  /// sparse layout or too many dimensions.
  SparseSum(at::Tensor tensor, int rank, int size, bool average);

  // The first exchange: all ranks' headers, in order.
  const at::Tensor& header() const { return header_; }
  const at::Tensor& headers() const { return headers_; }

  /// When the headers are there: kMismatch, naming a rank, when they do not fit together; else
  /// makes room for what the others will send.
  core::Status read_headers();

  /// The second exchange: this rank's two parts, which the others need, and their places for those
  /// of `rank`. Empty where there is nothing to send.
  struct Parts {
    std::span<std::byte> indices;
    std::span<std::byte> values;
  };
  Parts parts_of(int rank) const;

  /// When all parts are there: the tensor becomes the sum.
  void finish();

 private:
  core::Status check_header(int rank) const;

  at::Tensor tensor_;
  const int rank_;
  const int size_;
  const bool average_;
  at::Tensor header_;                // int64
  at::Tensor headers_;               // int64, a row a rank
  std::vector<at::Tensor> indices_;  // by rank
  std::vector<at::Tensor> values_;
};

}  // namespace fasthorovod::torch_binding
