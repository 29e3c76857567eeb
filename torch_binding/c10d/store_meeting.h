// How the members of a group find one another in torch's store, for one attempt to meet.
//
// Each member but the first asks under its rank, with a nonce: a number that nobody used before.
// The first one waits until all have asked, and answers each under its nonce, with one word for
// all. So nothing that an earlier attempt left in the store misleads anybody, however often each
// member has tried before: an ask that had its answer gets no other, and only who asked reads the
// answer. An ask that is given up is taken back, and an answer is taken away once read; a secret
// does not stay in the store.
//
// Blocks until the other side comes or the deadline passes (kTimedOut, saying who is absent).
#pragma once

#include "core/clock.h"
#include "core/result.h"
#include "torch_binding/c10d/first_word.h"
#include "torch_binding/c10d/torch_store.h"

namespace fasthorovod::torch_binding {

/// For the first member of `size`: waits for the others, then tells them.
core::Status answer_members(TorchStore& store, int size, const FirstWord& word,
                            core::TimePoint deadline);

/// For each other member.
core::Result<FirstWord> ask_first_member(TorchStore& store, int rank, core::TimePoint deadline);

}  // namespace fasthorovod::torch_binding
