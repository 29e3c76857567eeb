// An arena, its heap and a server, as an engine holds them for its auxiliaries, and the folder of
// the program on PATH.
#pragma once

#include <gtest/gtest.h>

#include <atomic>
#include <cstdlib>
#include <memory>
#include <string>

#include "transport/arena.h"
#include "transport/arena_heap.h"
#include "transport/aux_lane.h"
#include "transport/aux_pool.h"
#include "transport/aux_server.h"

namespace fasthorovod::transport {

/// Auxiliaries are looked for on PATH last, and the tests lie elsewhere.
inline void put_auxiliary_on_path() {
  static const std::string path = std::string(FASTHOROVOD_AUX_FOLDER) + ":" + std::getenv("PATH");
  ::setenv("PATH", path.c_str(), 1);
}

struct AuxRank {
  explicit AuxRank(std::size_t arena_bytes)
      : arena(std::move(Arena::create(arena_bytes)).value()), heap(arena, arena.bytes()) {
    put_auxiliary_on_path();
  }

  /// One auxiliary more.
  AuxProcessPtr lease() {
    auto leased = AuxPool::of_process().lease(1);
    EXPECT_TRUE(leased) << leased.error().message;
    return leased ? leased->front() : nullptr;
  }

  Arena arena;
  ArenaHeap heap;
  std::atomic<bool> busy{false};
  std::unique_ptr<AuxServer> server =
      std::move(AuxServer::create([this] { return busy.load(); })).value();
  AuxHome home{*server, arena, heap};
};

}  // namespace fasthorovod::transport
