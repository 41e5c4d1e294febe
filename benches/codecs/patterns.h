/* Patterns of lost data blocks, all made before the clock starts; so many that no library's cache of matrices holds them. */
#ifndef PATTERNS_H
#define PATTERNS_H

#include "frames.h"

enum { PATTERNS = 4096, BATCH = 16 };

typedef struct {
  uint8_t lost[PATTERNS][256];
} patterns_t;

static inline int ascending(const void *a, const void *b) { return *(const uint8_t *)a - *(const uint8_t *)b; }

/* m of k data blocks, ascending. */
static inline void patterns_fill(patterns_t *p, int k, int m) {
  uint64_t seed = 42;
  for (int i = 0; i < PATTERNS; i++) {
    uint8_t all[256];
    for (int j = 0; j < k; j++) all[j] = j;
    for (int j = 0; j < m; j++) {
      int with = j + (next_random(&seed) >> 33) % (k - j);
      uint8_t block = all[with];
      all[with] = all[j];
      all[j] = p->lost[i][j] = block;
    }
    qsort(p->lost[i], m, 1, ascending);
  }
}

#endif
