// The processors of this machine, their cores, and which are near a network card. By hwloc, where
// its plug-in can be loaded; else as the kernel says in /sys, which knows of cards that sit on a
// bus of their own and of nothing in between. Thread: any.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "core/aux_cores.h"
#include "core/log.h"
#include "core/result.h"
#include "transport/own_folders.h"

namespace fasthorovod::transport {

/// All processors there are, ascending, whether this process may use them or not. None is near
/// where the card of `interface` is unknown, or has all alike. Says in the log (info) when hwloc is
/// not there, and why. `plugins`: where its plug-in may be.
core::Result<std::vector<core::Processor>> look_at_machine(
    const std::string& interface, core::Log& log,
    const std::vector<std::filesystem::path>& plugins = own_folders());

/// By the kernel's files under `root` alone.
core::Result<std::vector<core::Processor>> look_at_sys(const std::string& interface,
                                                       const std::filesystem::path& root = "/sys");

/// The processors that share the last-level cache of one, itself included; empty where the kernel
/// does not say.
std::vector<int> cache_sharers(int processor, const std::filesystem::path& root = "/sys");

/// What an interface can send, in Mbit/s: 0 where the kernel does not know it, or makes it up, as
/// it does for interfaces without a card.
int link_mbit(const std::string& interface, const std::filesystem::path& root = "/sys");

}  // namespace fasthorovod::transport
