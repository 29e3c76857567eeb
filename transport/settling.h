// The last step of a start in which ranks of one host share memory: nobody goes on before everybody
// can. Each rank tells rank 0 that it is ready, or why it can not be; rank 0 then tells all to
// begin, or that reason. So a rank that lacks memory, say, ends the start of all at once, and all
// name it.
//
// Thread: owner (the io_context's). Takes what comes over the control links from construction until
// it is over.
#pragma once

#include <span>
#include <vector>

#include "core/result.h"
#include "core/world.h"
#include "transport/control_links.h"
#include "transport/member.h"

namespace fasthorovod::transport {

class Settling final {
 public:
  Settling(ControlLinks& links, const core::World& world);
  ~Settling();
  Settling(const Settling&) = delete;
  Settling& operator=(const Settling&) = delete;

  /// This rank has all it needs.
  void ready();
  /// This rank can not go on. An error without a culprit is its own.
  void fail(core::Error error);
  /// This rank has waited long enough: the start failed.
  void expire();

  [[nodiscard]] const bool& over() const { return over_; }
  /// Once it is over.
  [[nodiscard]] const core::Status& outcome() const { return outcome_; }

 private:
  void take(int rank, std::span<const std::byte> message);
  void lose(int rank, core::Error error);
  void count(int rank);
  void conclude(core::Status outcome);
  void tell(const RendezvousMessage& message);

  ControlLinks& links_;
  const core::World& world_;
  std::vector<bool> ready_;  // by rank; rank 0 only
  core::Status outcome_;
  bool over_ = false;
};

}  // namespace fasthorovod::transport
