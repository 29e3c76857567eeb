// The tags of letters (mpi_mail.h) and blocks (mpi_blocks.h).
#pragma once

namespace fasthorovod::transport {

inline constexpr int kAskTag = 1;     // to rank 0: mpi_words.h
inline constexpr int kAnswerTag = 2;  // from rank 0: mpi_words.h
inline constexpr int kStoreTag = 3;   // from rank 0: mpi_store.h
inline constexpr int kBlockTag = 4;

}  // namespace fasthorovod::transport
