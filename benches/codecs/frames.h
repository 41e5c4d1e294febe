/* Frames of a convolutional code, and what every C program here shares: the file, the clock, the report.
 *
 * A file of frames is a line of text, "n K bits frames poly1 ... polyn" (octal, newest bit first, as in the literature; a
 * minus sign says that the output is inverted), then
 * for each frame (bits + K - 1) * n received symbols of one byte, 0 for a certain 0 and 255 for a certain 1, then for each frame
 * its bits, packed, first bit in the most significant place.
 */
#ifndef FRAMES_H
#define FRAMES_H

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

typedef struct {
  int n, k, bits, count;
  int polynomials[8];
  int symbols_per_frame, bytes_per_frame;
  uint8_t *symbols, *data;
} frames_t;

static inline void must(int holds, const char *what) {
  if (!holds) {
    fprintf(stderr, "error: %s\n", what);
    exit(2);
  }
}

static inline frames_t frames_read(const char *path) {
  frames_t f;
  FILE *file = fopen(path, "rb");
  must(file != NULL, "no file of frames");
  must(fscanf(file, "%d %d %d %d", &f.n, &f.k, &f.bits, &f.count) == 4 && f.n <= 8, "header of the frames");
  for (int i = 0; i < f.n; i++) must(fscanf(file, "%o", (unsigned *)&f.polynomials[i]) == 1, "polynomials of the frames");
  must(fgetc(file) == '\n', "end of the header");
  f.symbols_per_frame = (f.bits + f.k - 1) * f.n;
  f.bytes_per_frame = (f.bits + 7) / 8;
  size_t symbols = (size_t)f.symbols_per_frame * f.count, bytes = (size_t)f.bytes_per_frame * f.count;
  f.symbols = (uint8_t *)malloc(symbols);
  f.data = (uint8_t *)malloc(bytes);
  must(fread(f.symbols, 1, symbols, file) == symbols && fread(f.data, 1, bytes, file) == bytes, "frames cut short");
  fclose(file);
  return f;
}

/* The polynomial with the newest bit in the lowest place, as Karn's libraries and those after them write it. */
static inline int newest_lowest(int polynomial, int k) {
  int reversed = 0;
  for (int i = 0; i < k; i++) reversed |= (abs(polynomial) >> i & 1) << (k - 1 - i);
  return polynomial < 0 ? -reversed : reversed;
}

static inline double cpu_s(void) {
  struct timespec now;
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
  return now.tv_sec + 1e-9 * now.tv_nsec;
}

static inline long wrong_bits(const uint8_t *a, const uint8_t *b, size_t bytes) {
  long wrong = 0;
  for (size_t i = 0; i < bytes; i++) wrong += __builtin_popcount(a[i] ^ b[i]);
  return wrong;
}

static inline void report(double bits, double seconds, double error_rate) {
  printf("{\"bits\": %.0f, \"cpu_s\": %.9f, \"error_rate\": %.6g}\n", bits, seconds, error_rate);
}

/* Decodes frame after frame for so many CPU seconds, at least each once; `decode` gives packed bits. The first round warms up. */
#define TIME_FRAMES(f, seconds, decode)                                                                        \
  do {                                                                                                         \
    uint8_t *decoded = calloc(1, (f).bytes_per_frame + 64);                                                           \
    long wrong = 0, rounds = 0;                                                                                \
    double begun, spent;                                                                                       \
    for (int i = 0; i < (f).count; i++) {                                                                      \
      decode(i, decoded);                                                                                      \
      wrong += wrong_bits(decoded, (f).data + (size_t)i * (f).bytes_per_frame, (f).bits / 8);                       \
    }                                                                                                          \
    begun = cpu_s();                                                                                           \
    do {                                                                                                       \
      for (int i = 0; i < (f).count; i++) decode(i, decoded);                                                  \
      rounds++;                                                                                                \
      spent = cpu_s() - begun;                                                                                 \
    } while (spent < (seconds));                                                                               \
    report((double)rounds * (f).count * (f).bits, spent, (double)wrong / ((double)(f).count * (f).bits));      \
  } while (0)

/* Random numbers (xorshift64*), the same everywhere. */
static inline uint64_t next_random(uint64_t *state) {
  *state ^= *state >> 12;
  *state ^= *state << 25;
  *state ^= *state >> 27;
  return *state * 0x2545f4914f6cdd1dull;
}

#endif
