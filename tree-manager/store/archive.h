#pragma once
// All records of a store as one text, for backups and for moves between kinds of stores. The text has lines of JSON: a
// head, a line for each record, and an end with the number of the records and their digest.
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
  std::uint64_t fence = 0;   // the highest number of a leadership that the store has had
  std::int64_t made_at = 0;  // seconds since 1970-01-01 UTC
};

[[nodiscard]] std::string to_text(const Archive& archive);
/// Reads an archive. Errc::corrupt: the text is no archive, is not whole, or was changed.
[[nodiscard]] Result<Archive> archive_from_text(std::string_view text);

/// Reads all records of the store.
[[nodiscard]] Result<Archive> read_archive(Store& store, std::int64_t now_s);
/// Writes the archive's records to the store, and makes its fence higher than the archive's fence. `replace`: removes
/// the store's records first; if it is false, Errc::mismatch says that the store is not empty. Calls `between` between
/// two writes: its error ends the work. After an error no manager opens the store before a restore with `replace`.
[[nodiscard]] Status restore(Store& store, const Archive& archive, bool replace,
                             const std::function<Status()>& between);

}  // namespace tributary::manager
