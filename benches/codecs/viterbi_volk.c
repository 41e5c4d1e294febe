/* VOLK's kernel for K=7 rate 1/2, the one of GNU Radio's gr-fec: the kernel adds, compares and selects; the trace-back around it
 * is the usual one over its decisions. Usage: viterbi_volk FRAMES SECONDS */
#include <volk/volk.h>

#include "frames.h"

enum { K = 7, STATES = 64 };

int main(int argc, char **argv) {
  must(argc == 3, "usage: viterbi_volk FRAMES SECONDS");
  frames_t f = frames_read(argv[1]);
  must(f.n == 2 && f.k == K, "the kernel is for K=7 rate 1/2");
  int steps = f.bits + K - 1;
  must(steps % 2 == 0, "the kernel takes two steps at once");

  unsigned char *branches = volk_malloc(STATES, 64), *from = volk_malloc(STATES, 64), *to = volk_malloc(STATES, 64);
  uint64_t *decisions = volk_malloc(sizeof(uint64_t) * steps, 64);
  unsigned char *symbols = volk_malloc((size_t)f.symbols_per_frame * f.count, 64);
  memcpy(symbols, f.symbols, (size_t)f.symbols_per_frame * f.count);
  for (int i = 0; i < 2; i++)
    for (int state = 0; state < STATES / 2; state++)
      branches[i * STATES / 2 + state] =
          __builtin_parity(2 * state & newest_lowest(f.polynomials[i], K)) ? 255 : 0;

#define DECODE(i, out)                                                                                            \
  do {                                                                                                            \
    memset(from, 63, STATES);                                                                                     \
    from[0] = 0;                                                                                                  \
    memset(decisions, 0, sizeof(uint64_t) * steps);                                                               \
    volk_8u_x4_conv_k7_r2_8u(to, from, symbols + (size_t)(i) * f.symbols_per_frame, (unsigned char *)decisions,   \
                             f.bits, K - 1, branches);                                                            \
    unsigned state = 0;                                                                                           \
    for (int at = f.bits - 1; at >= 0; at--) {                                                                    \
      state = state >> 1 | (decisions[at + K - 1] >> (state >> 2) & 1) << 7;                                      \
      (out)[at / 8] = state;                                                                                      \
    }                                                                                                             \
  } while (0)

  TIME_FRAMES(f, atof(argv[2]), DECODE);
  return 0;
}
