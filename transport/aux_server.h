// The thread of a rank that serves its auxiliaries. It sleeps while none asks for anything; while
// operations are pending it also sees to it that each auxiliary still answers.
//
// Thread: any, unless said otherwise.
#pragma once

#include <atomic>
#include <chrono>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "core/clock.h"
#include "core/result.h"
#include "transport/poller.h"

namespace fasthorovod::transport {

/// What is served. All calls come from the server's thread, between add and remove.
class AuxClient {
 public:
  virtual ~AuxClient() = default;
  /// True: call again within a millisecond.
  virtual bool serve() = 0;
  /// Before sleeping: false when there is more to serve.
  virtual bool arm() = 0;
  /// Every second while operations are pending.
  virtual void check_alive(core::TimePoint now) = 0;
  /// Nothing is pending any more.
  virtual void forget_alive() = 0;
};

class AuxServer final {
 public:
  static constexpr std::chrono::milliseconds kCheckInterval{1000};

  /// `busy` says whether operations are pending; it is cheap. wake() follows when one begins.
  static core::Result<std::unique_ptr<AuxServer>> create(std::function<bool()> busy);
  /// All clients are removed before.
  ~AuxServer();

  void add(AuxClient& client);
  /// When it has returned the client is called no more.
  void remove(AuxClient& client);

  /// What the caller did before is seen by every serve() from now on. An auxiliary's message is no
  /// order between threads of this process.
  void publish() { const std::lock_guard lock(mutex_); }

  /// Something became runnable or startable, or a client has something new.
  void wake();

  /// An eventfd for auxiliaries to ring.
  [[nodiscard]] int bell() const { return poller_->bell(); }

 private:
  AuxServer(std::unique_ptr<Poller> poller, std::function<bool()> busy);
  void run();
  int serve_all();
  void check_all(bool busy);

  const std::unique_ptr<Poller> poller_;
  const std::function<bool()> busy_;
  std::mutex mutex_;
  std::vector<AuxClient*> clients_;
  core::TimePoint next_check_{};  // server's thread

  std::atomic<bool> stopped_{false};
  std::atomic<bool> woken_{false};  // partner of idle_, as in lane.cc
  std::atomic<bool> idle_{false};
  std::thread thread_;
};

}  // namespace fasthorovod::transport
