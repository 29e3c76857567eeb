#include "torch_binding/c10d/torch_store.h"

#include <c10/util/Exception.h>

#include <algorithm>
#include <chrono>
#include <torch/csrc/distributed/c10d/PrefixStore.hpp>
#include <torch/csrc/distributed/c10d/TCPStore.hpp>
#include <utility>

namespace fasthorovod::torch_binding {
namespace {

core::Error failed(const char* what, const std::string& key, const std::exception& failure) {
  const auto* error = dynamic_cast<const c10::Error*>(&failure);
  const std::string words = error != nullptr ? error->what_without_backtrace() : failure.what();
  return {core::ErrorCode::kTimedOut,
          std::string(what) + " \"" + key + "\" in torch's store: " + words};
}

}  // namespace

std::chrono::milliseconds until(core::TimePoint deadline) {
  const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline - core::Clock::now());
  return std::max(left, std::chrono::milliseconds(1));
}

TorchStore::TorchStore(c10::intrusive_ptr<c10d::Store> store, const std::string& prefix)
    : store_(std::move(store)), prefix_("fasthorovod/" + prefix) {}

core::Status TorchStore::put(const std::string& key, const std::string& value,
                             core::TimePoint /*deadline*/) {
  try {
    store_->set(prefix_ + key, value);
    // A TCPStore's set() does not wait for the store, so a later call on another connection might
    // overtake it.
    store_->check({prefix_ + key});
  } catch (const std::exception& failure) {
    return failed("setting", key, failure);
  }
  return {};
}

core::Result<std::string> TorchStore::get(const std::string& key, core::TimePoint deadline) {
  try {
    store_->wait({prefix_ + key}, until(deadline));
    return store_->get_to_str(prefix_ + key);
  } catch (const std::exception& failure) {
    return failed("waiting for", key, failure);
  }
}

core::Result<std::optional<std::string>> TorchStore::find(const std::string& key) {
  try {
    if (!store_->check({prefix_ + key})) return std::optional<std::string>();
    return std::optional(store_->get_to_str(prefix_ + key));
  } catch (const std::exception& failure) {
    return failed("looking for", key, failure);
  }
}

void TorchStore::remove(const std::string& key) {
  try {
    store_->deleteKey(prefix_ + key);
  } catch (const std::exception&) {  // a store that keeps everything is only larger
    return;
  }
}

c10::intrusive_ptr<c10d::Store> store_below(c10::intrusive_ptr<c10d::Store> store, int prefixes) {
  for (int level = 0; level < prefixes; ++level) {
    if (auto* prefixed = dynamic_cast<c10d::PrefixStore*>(store.get())) {
      store = prefixed->getUnderlyingStore();
    }
  }
  return store;
}

std::string place_of(const c10::intrusive_ptr<c10d::Store>& store) {
  c10::intrusive_ptr<c10d::Store> bare = store;
  if (auto* prefixed = dynamic_cast<c10d::PrefixStore*>(bare.get())) {
    bare = prefixed->getUnderlyingNonPrefixStore();
  }
  const auto* tcp = dynamic_cast<c10d::TCPStore*>(bare.get());
  if (tcp == nullptr) return "";
  const std::string& host = tcp->getHost();
  const bool bare_ipv6 = host.find(':') != std::string::npos && host.front() != '[';
  return (bare_ipv6 ? "[" + host + "]" : host) + ":" + std::to_string(tcp->getPort());
}

}  // namespace fasthorovod::torch_binding
