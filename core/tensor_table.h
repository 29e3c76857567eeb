// The names the coordinator knows, by group. Thread: owner.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "core/known_tensor.h"

namespace fasthorovod::core {

class TensorTable final {
 public:
  explicit TensorTable(int size) : size_(size) {}

  /// The tensor of that name, added when it is new. Its address stays until it is forgotten.
  KnownTensor& find_or_add(const KnownGroup& group, const std::string& name);

  /// Drops a tensor that nobody has in flight and that is not cached; otherwise does nothing.
  void forget_if_unused(const KnownTensor& tensor);

  /// Those that some rank has in flight and that are not in the ready list, by arrival.
  [[nodiscard]] std::vector<KnownTensor*> pending() const;

 private:
  int size_;
  using Names = std::unordered_map<std::string, std::unique_ptr<KnownTensor>>;
  std::map<GroupId, Names> tensors_;  // none of them empty
};

}  // namespace fasthorovod::core
