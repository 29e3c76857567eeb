#include "core/fingerprint.h"

#include <bit>

#include "core/mixer.h"

namespace fasthorovod::core {

namespace {

void add_tensor(Mixer& mixer, OpKind op, const PlanTensor& tensor) {
  if (op != OpKind::kAllgather || tensor.shape.empty()) {
    mixer.add(element_count(tensor.shape));
    return;
  }
  // Dimension 0 is each rank's own; what all agree on is the size of a row and everybody's rows.
  mixer.add(element_count({tensor.shape.begin() + 1, tensor.shape.end()}));
  for (const std::int64_t rows : tensor.first_dimensions) {
    mixer.add(static_cast<std::uint64_t>(rows));
  }
}

}  // namespace

std::uint32_t fingerprint(const PlanItem& item) {
  Mixer mixer;
  mixer.add(item.group);
  mixer.add(item.sequence);
  mixer.add(static_cast<std::uint64_t>(item.op));
  mixer.add(static_cast<std::uint64_t>(item.type));
  mixer.add(static_cast<std::uint64_t>(item.reduction));
  mixer.add(static_cast<std::uint64_t>(item.root));
  mixer.add(std::bit_cast<std::uint64_t>(item.prescale));
  mixer.add(std::bit_cast<std::uint64_t>(item.postscale));
  mixer.add(static_cast<std::uint64_t>(item.codec.id));
  mixer.add(std::bit_cast<std::uint32_t>(item.codec.threshold));
  mixer.add(item.tensors.size());
  for (const PlanTensor& tensor : item.tensors) add_tensor(mixer, item.op, tensor);
  return mixer.folded();
}

}  // namespace fasthorovod::core
