#include "ops/host_sweep.h"

#include <algorithm>
#include <utility>

namespace fasthorovod::ops {

HostSweep::HostSweep(const HostLayout& layout, std::vector<int> stripes)
    : layout_(layout),
      stripes_(std::move(stripes)),
      bytes_(stripes_.size()),
      taken_(stripes_.size()) {
  enter_piece();
}

HostBlock HostSweep::block(std::size_t index) const {
  return {piece_, stripes_[index], taken_[index],
          std::min(kBlockBytes, bytes_[index] - taken_[index])};
}

void HostSweep::took(const HostBlock& block) {
  const auto stripe = std::ranges::find(stripes_, block.stripe);
  taken_[static_cast<std::size_t>(stripe - stripes_.begin())] += block.bytes;
  left_ -= block.bytes;
}

void HostSweep::go_on() {
  ++piece_;
  enter_piece();
}

void HostSweep::restart() {
  piece_ = 0;
  enter_piece();
}

void HostSweep::enter_piece() {
  std::ranges::fill(taken_, 0);
  left_ = 0;
  if (over()) return;
  for (std::size_t i = 0; i < stripes_.size(); ++i) {
    bytes_[i] = layout_.stripe(piece_, stripes_[i]).bytes;
    left_ += bytes_[i];
  }
}

}  // namespace fasthorovod::ops
