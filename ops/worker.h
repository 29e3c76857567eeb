// One thread that runs what is posted to it, in order. It sleeps while there is nothing to do.
//
// Thread: post from any; stop from the owner, once, which runs what was posted before and joins.
#pragma once

#include <condition_variable>
#include <deque>
#include <functional>
#include <mutex>
#include <thread>

namespace fasthorovod::ops {

class Worker final {
 public:
  Worker();
  ~Worker();
  Worker(const Worker&) = delete;
  Worker& operator=(const Worker&) = delete;

  /// After stop() the function is dropped, unless it is the worker itself that posts: what it still
  /// does may end only with what it posts.
  void post(std::function<void()> function);
  void stop();

 private:
  void run();

  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::function<void()>> queue_;
  bool stopping_ = false;
  std::thread thread_;  // last: it uses the others
};

}  // namespace fasthorovod::ops
