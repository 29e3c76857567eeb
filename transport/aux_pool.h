// The auxiliary processes of this process: started when they are first asked for, kept for the next
// engine when one ends, watched all the time.
//
// A keeper thread starts them, because the system ends them with the thread that did, and waits for
// their ends. It lives as long as the process, and there is none before the first lease.
//
// Thread: any. A forked child has a pool of its own, empty at first.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "core/result.h"
#include "transport/aux_process.h"

namespace fasthorovod::transport {

class AuxPool final {
 public:
  static AuxPool& of_process();

  /// Auxiliaries that run and serve nobody. kUnavailable when the program is missing, can not be
  /// started or is of another build; then none is leased.
  core::Result<std::vector<AuxProcessPtr>> lease(int count);

  /// Takes one back that serves nobody any more. One that has ended is forgotten.
  void give_back(AuxProcessPtr process);

 private:
  class Keeper;
  AuxPool();
  core::Result<AuxProcessPtr> start(const std::string& program);
  AuxProcessPtr take_idle();

  std::mutex mutex_;
  std::vector<AuxProcessPtr> idle_;
  std::unique_ptr<Keeper> keeper_;
};

}  // namespace fasthorovod::transport
