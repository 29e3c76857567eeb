#include "ops/worker.h"

#include <gtest/gtest.h>

#include <atomic>
#include <future>
#include <thread>

namespace fasthorovod::ops {
namespace {

// Everything posted before has run.
void settle(Worker& worker) {
  std::promise<void> done;
  worker.post([&done] { done.set_value(); });
  done.get_future().wait();
}

void take(Worker& worker) {
  while (!worker.try_take()) std::this_thread::yield();
}

TEST(Worker, WhoHasItsTurnRunsWhatIsPosted) {
  Worker worker;
  settle(worker);
  take(worker);
  EXPECT_FALSE(worker.wanted());
  std::thread::id ran_on;
  worker.post([&ran_on] { ran_on = std::this_thread::get_id(); });
  EXPECT_TRUE(worker.wanted());
  worker.serve();
  EXPECT_FALSE(worker.wanted());
  EXPECT_EQ(ran_on, std::this_thread::get_id());
  worker.give_back();
}

TEST(Worker, WhatIsLeftRunsOnItsThreadAgain) {
  std::promise<std::thread::id> ran_on;
  Worker worker;  // last: its thread uses the other until it is joined
  take(worker);
  worker.post([&ran_on] { ran_on.set_value(std::this_thread::get_id()); });
  worker.give_back();
  EXPECT_NE(ran_on.get_future().get(), std::this_thread::get_id());
}

TEST(Worker, ItsTurnIsOneThreads) {
  Worker worker;
  take(worker);
  std::thread([&worker] { EXPECT_FALSE(worker.try_take()); }).join();
  worker.give_back();
}

TEST(Worker, ItsTurnIsNotToBeHadWhileItIsBusy) {
  std::promise<void> begins;
  std::promise<void> ends;
  Worker worker;  // last: its thread uses the others until it is joined
  worker.post([&] {
    begins.set_value();
    ends.get_future().wait();
  });
  begins.get_future().wait();
  EXPECT_FALSE(worker.try_take());
  ends.set_value();
}

TEST(Worker, OnlyOtherThreadsCallForWhoHasTheTurn) {
  Worker worker;
  std::atomic<int> calls{0};
  worker.on_wanted([&calls] { ++calls; });
  take(worker);
  worker.post([] {});
  EXPECT_EQ(calls, 0);
  std::thread([&worker] { worker.post([] {}); }).join();
  EXPECT_EQ(calls, 1);
  worker.give_back();
}

TEST(Worker, StopsOnceTheTurnWasGivenBack) {
  Worker worker;
  take(worker);
  std::thread stopping([&worker] { worker.stop(); });
  bool ran = false;
  worker.post([&ran] { ran = true; });  // also when it is stopping already
  worker.give_back();
  stopping.join();
  EXPECT_TRUE(ran);
  EXPECT_FALSE(worker.try_take());
}

}  // namespace
}  // namespace fasthorovod::ops
