#include "packaging/slurm/nearest.h"

#include <string.h>

enum { kKeyBytesMax = 64 }; /* longer keys are near to no name */

static size_t least_of(size_t a, size_t b) {
  return a < b ? a : b;
}

/* Returns how many letters one must change, add, leave out or swap with the next letter. */
static size_t edit_distance(const char* a, size_t a_bytes, const char* b, size_t b_bytes) {
  size_t table[kKeyBytesMax + 1][kKeyBytesMax + 1]; /* row i, column j: distance of the first i and j letters */
  for (size_t i = 0; i <= a_bytes; ++i) {
    for (size_t j = 0; j <= b_bytes; ++j) {
      if (i == 0 || j == 0) {
        table[i][j] = i + j;
        continue;
      }
      const size_t changed = table[i - 1][j - 1] + (a[i - 1] == b[j - 1] ? 0 : 1);
      table[i][j] = least_of(changed, least_of(table[i - 1][j], table[i][j - 1]) + 1);
      const int swapped = i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1];
      if (swapped) table[i][j] = least_of(table[i][j], table[i - 2][j - 2] + 1);
    }
  }
  return table[a_bytes][b_bytes];
}

const char* tributary_nearest_key(const char* key, const char* const* names, size_t count) {
  const size_t bytes = strlen(key);
  if (bytes > kKeyBytesMax) return NULL;
  const char* nearest = NULL;
  size_t least = (bytes < 8 ? 1 : bytes / 4) + 1; /* a greater distance is another word */
  for (size_t i = 0; i < count; ++i) {
    const size_t name_bytes = strlen(names[i]);
    if (name_bytes > kKeyBytesMax) continue;
    const size_t distance = edit_distance(key, bytes, names[i], name_bytes);
    if (distance < least) {
      nearest = names[i];
      least = distance;
    }
  }
  return nearest;
}
