#pragma once
// All records of a store as one text: for backups, and to move from one kind of store to another. Lines of JSON: a head,
// a line for each record, and an end that counts them and has their digest.
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "tree-manager/store/store.h"

namespace tributary::manager {

/// The value that a store has while an archive is being restored into it. No manager opens such a store.
inline constexpr const char* kRestoringKey = "restoring";

struct Archive {
  Snapshot records;
  std::vector<EndedGroup> ended;
  std::uint64_t fence = 0;   // no leadership of the store had a higher number
  std::int64_t made_at = 0;  // seconds since 1970-01-01 UTC
};

[[nodiscard]] std::string to_text(const Archive& archive);
/// Errc::corrupt: the text is no archive, is not whole, or has been changed.
[[nodiscard]] Result<Archive> archive_from_text(std::string_view text);

/// Reads all that the store has.
[[nodiscard]] Result<Archive> read_archive(Store& store, std::int64_t now_s);
/// Makes the store's records those of the archive, and its fence higher than the archive's. `replace`: removes what the
/// store has; without it, Errc::mismatch says that the store is not empty. `between` is called between two writes: its
/// error ends the work. After an error the store is one that no manager opens, until a restore with `replace` succeeds.
[[nodiscard]] Status restore(Store& store, const Archive& archive, bool replace,
                             const std::function<Status()>& between);

}  // namespace tributary::manager
