/* libosmocore's Viterbi decoder: SSE or AVX2 for K=5 and K=7 at rates 1/2 to 1/4, a general one for other codes up to K=8.
 * Its decoded bits come one to a byte; packing them for the comparison is not timed. Usage: viterbi_osmocore FRAMES SECONDS */
#include <osmocom/core/conv.h>

#include "frames.h"

int main(int argc, char **argv) {
  must(argc == 3, "usage: viterbi_osmocore FRAMES SECONDS");
  frames_t f = frames_read(argv[1]);
  must(f.k <= 8, "a state of libosmocore has eight bits");

  static uint8_t outputs[256][2], states[256][2];
  int mask = (1 << (f.k - 1)) - 1;
  for (int state = 0; state <= mask; state++)
    for (int bit = 0; bit < 2; bit++) {
      int window = state << 1 | bit;
      outputs[state][bit] = 0;
      for (int i = 0; i < f.n; i++)
        outputs[state][bit] = outputs[state][bit] << 1 | __builtin_parity(window & newest_lowest(f.polynomials[i], f.k));
      states[state][bit] = window & mask;
    }
  struct osmo_conv_code code = {f.n, f.k, f.bits, CONV_TERM_FLUSH, outputs, states, NULL, NULL, NULL};

  /* Its symbols: 127 for a certain 0, -127 for a certain 1. */
  size_t count = (size_t)f.symbols_per_frame * f.count;
  sbit_t *symbols = malloc(count);
  for (size_t i = 0; i < count; i++) {
    int symbol = 127 - f.symbols[i];
    symbols[i] = symbol < -127 ? -127 : symbol;
  }
  ubit_t *bits = malloc(f.bits);

#define DECODE(i, out) osmo_conv_decode(&code, symbols + (size_t)(i) * f.symbols_per_frame, bits)
  long wrong = 0;
  for (int i = 0; i < f.count; i++) {
    DECODE(i, NULL);
    for (int at = 0; at < f.bits; at++) wrong += bits[at] != (f.data[(size_t)i * (f.bits / 8) + at / 8] >> (7 - at % 8) & 1);
  }
  double begun = cpu_s(), spent, rounds = 0;
  do {
    for (int i = 0; i < f.count; i++) DECODE(i, NULL);
    rounds++;
    spent = cpu_s() - begun;
  } while (spent < atof(argv[2]));
  report(rounds * f.count * f.bits, spent, wrong / ((double)f.count * f.bits));
  return 0;
}
