/* libfec's Viterbi decoders: K=7 and K=9 rate 1/2, K=9 rate 1/3, K=15 rate 1/6.
 * Usage: viterbi_libfec FRAMES SECONDS [OUTPUT]; with OUTPUT, every frame is decoded once and its bits are written there. */
#include <fec.h>

#include "frames.h"

typedef struct {
  int n, k;
  void *(*create)(int);
  void (*set)(int *);
  int (*init)(void *, int);
  int (*update)(void *, unsigned char *, int);
  int (*chainback)(void *, unsigned char *, unsigned, unsigned);
} decoder_t;

static const decoder_t DECODERS[] = {
    {2, 7, create_viterbi27, set_viterbi27_polynomial, init_viterbi27, update_viterbi27_blk, chainback_viterbi27},
    {2, 9, create_viterbi29, set_viterbi29_polynomial, init_viterbi29, update_viterbi29_blk, chainback_viterbi29},
    {3, 9, create_viterbi39, set_viterbi39_polynomial, init_viterbi39, update_viterbi39_blk, chainback_viterbi39},
    {6, 15, create_viterbi615, set_viterbi615_polynomial, init_viterbi615, update_viterbi615_blk, chainback_viterbi615},
};

int main(int argc, char **argv) {
  must(argc >= 3, "usage: viterbi_libfec FRAMES SECONDS [OUTPUT]");
  frames_t f = frames_read(argv[1]);
  const decoder_t *d = NULL;
  for (size_t i = 0; i < sizeof DECODERS / sizeof *DECODERS; i++)
    if (DECODERS[i].n == f.n && DECODERS[i].k == f.k) d = &DECODERS[i];
  must(d != NULL, "libfec has no decoder for this code");

  /* libfec for i386 decodes noise if the polynomials are set before the first decoder is made. */
  void *state = d->create(f.bits);
  int polynomials[8];
  for (int i = 0; i < f.n; i++) polynomials[i] = newest_lowest(f.polynomials[i], f.k);
  d->set(polynomials);

#define DECODE(i, out)                                                                      \
  (d->init(state, 0), d->update(state, f.symbols + (size_t)(i) * f.symbols_per_frame, f.bits + f.k - 1), \
   d->chainback(state, out, f.bits, 0))

  if (argc > 3) {
    FILE *output = fopen(argv[3], "wb");
    uint8_t *decoded = calloc(1, f.bytes_per_frame + 8);
    for (int i = 0; i < f.count; i++) {
      DECODE(i, decoded);
      must(fwrite(decoded, 1, f.bytes_per_frame, output) == (size_t)f.bytes_per_frame, "output");
    }
    fclose(output);
    return 0;
  }
  TIME_FRAMES(f, atof(argv[2]), DECODE);
  return 0;
}
