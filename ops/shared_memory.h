// The memory that an engine shares with other processes of its host, the other ranks and its own
// auxiliaries: its arena, of which a heap hands out what lies behind the host team's table, and the
// arenas of the other ranks here.
//
// Thread: the heap takes any; the rest does not change.
#pragma once

#include <cstddef>
#include <memory>
#include <vector>

#include "core/result.h"
#include "core/world.h"
#include "ops/host_mate.h"
#include "transport/arena.h"
#include "transport/arena_heap.h"
#include "transport/control_plane.h"
#include "transport/mate.h"

namespace fasthorovod::ops {

class SharedMemory final {
 public:
  /// Whether some host of the world has several ranks. The same on all ranks.
  static bool has_mates(const core::World& world);

  /// Makes an arena whose heap hands out `mebibytes` at most, and more only where groups would wait
  /// for each other (host_areas.h). In a world that has mates all ranks call it, it is exchanged
  /// with the ranks of this host, and on an error all ranks hear of that. Before control.run().
  static core::Result<std::unique_ptr<SharedMemory>> make(transport::ControlPlane& control,
                                                          int mebibytes);

  /// What one operation may take of each rank's arena at most. The same on all ranks.
  static std::size_t largest_area(const transport::ControlPlane& control);

  [[nodiscard]] const transport::Arena& arena() const { return own_->arena; }
  [[nodiscard]] transport::ArenaHeap& heap() { return own_->heap; }

  /// Page aligned memory in this rank's arena, contents undefined. It is valid as long as anybody
  /// holds it, also when this object is gone. kUnavailable: there is no room.
  [[nodiscard]] core::Result<std::shared_ptr<std::byte>> lend(std::size_t bytes);

  /// All ranks of this host, in order.
  [[nodiscard]] std::vector<HostSeat> seats() const;

 private:
  /// What memory that was lent out needs.
  struct Own {
    Own(transport::Arena made, std::size_t limit);
    const transport::Arena arena;
    transport::ArenaHeap heap;
  };

  SharedMemory(int rank, transport::Arena arena, std::vector<transport::Mate> mates,
               std::size_t limit);

  const int rank_;
  const std::shared_ptr<Own> own_;  // owners: this, and who holds memory that was lent out
  const std::vector<transport::Mate> mates_;
};

}  // namespace fasthorovod::ops
