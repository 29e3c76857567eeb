#include "core/tensor_table.h"

#include <algorithm>

namespace fasthorovod::core {

KnownTensor& TensorTable::find_or_add(const KnownGroup& group, const std::string& name) {
  std::unique_ptr<KnownTensor>& slot = tensors_[group.id][name];
  if (!slot) slot = std::make_unique<KnownTensor>(group, name, size_);
  return *slot;
}

void TensorTable::forget_if_unused(const KnownTensor& tensor) {
  if (tensor.state != KnownTensor::State::kIdle || tensor.cache_position) return;
  const auto names = tensors_.find(tensor.group().id);
  // By iterator: the name dies with the tensor.
  names->second.erase(names->second.find(tensor.name()));
  if (names->second.empty()) tensors_.erase(names);
}

std::vector<KnownTensor*> TensorTable::pending() const {
  std::vector<KnownTensor*> found;
  for (const auto& [group, names] : tensors_) {
    for (const auto& [name, tensor] : names) {
      const KnownTensor::State state = tensor->state;
      if (state == KnownTensor::State::kWaiting || state == KnownTensor::State::kComplete) {
        found.push_back(tensor.get());
      }
    }
  }
  std::sort(found.begin(), found.end(),
            [](const KnownTensor* a, const KnownTensor* b) { return a->arrival < b->arrival; });
  return found;
}

}  // namespace fasthorovod::core
