/* libfec's Reed-Solomon (255,223): encode, or decode words with so many symbol errors.
 *
 * Usage: reed_solomon_libfec ccsds|char encode|ERRORS SECONDS
 *        reed_solomon_libfec ccsds|dual|char words INPUT OUTPUT
 *
 * `ccsds` is the compiled-in CCSDS code in the conventional basis, `dual` in the dual basis, `char` the general codec with the
 * conventional parameters (x^8 + x^4 + x^3 + x^2 + 1, roots a^0 to a^31). `words` reads words of 255 symbols; for each it writes
 * the 32 parity symbols of its first 223, the 255 symbols that decoding gives, and one signed byte: how many were wrong, or -1.
 */
#include <fec.h>

#include "frames.h"

enum { N = 255, DATA = 223, WORDS = 512 };

static void *general;
static char kind;

static void encode(uint8_t *data, uint8_t *parity) {
  if (kind == 'd') encode_rs_ccsds(data, parity, 0);
  else if (general) encode_rs_char(general, data, parity);
  else encode_rs_8(data, parity, 0);
}

static int decode(uint8_t *word) {
  if (kind == 'd') return decode_rs_ccsds(word, NULL, 0, 0);
  return general ? decode_rs_char(general, word, NULL, 0) : decode_rs_8(word, NULL, 0, 0);
}

static int all_words(const char *input, const char *output) {
  FILE *from = fopen(input, "rb"), *to = fopen(output, "wb");
  must(from && to, "files of words");
  uint8_t word[N], parity[N - DATA];
  while (fread(word, 1, N, from) == N) {
    encode(word, parity);
    fwrite(parity, 1, sizeof parity, to);
    int wrong = decode(word);
    signed char count = wrong < 0 ? -1 : wrong;
    fwrite(word, 1, N, to);
    fwrite(&count, 1, 1, to);
  }
  fclose(from);
  return fclose(to);
}

int main(int argc, char **argv) {
  must(argc >= 4, "usage: reed_solomon_libfec ccsds|dual|char encode|ERRORS SECONDS");
  kind = argv[1][0] == 'd' ? 'd' : 'c';
  general = argv[1][1] == 'h' ? init_rs_char(8, 0x11d, 0, 1, N - DATA, 0) : NULL;
  if (argv[2][0] == 'w') return all_words(argv[3], argv[4]);

  int encoding = argv[2][0] == 'e', errors = atoi(argv[2]);
  double seconds = atof(argv[3]);
  static uint8_t sent[WORDS][N], received[WORDS][N], work[N];
  uint64_t seed = 88172645463325252ull;
  for (int w = 0; w < WORDS; w++) {
    for (int i = 0; i < DATA; i++) sent[w][i] = next_random(&seed) >> 56;
    encode(sent[w], sent[w] + DATA);
    memcpy(received[w], sent[w], N);
    for (int wrong = 0; wrong < errors;) {
      int at = next_random(&seed) >> 32 & 255;
      if (at >= N || received[w][at] != sent[w][at]) continue;
      received[w][at] ^= 1 + (next_random(&seed) >> 32) % 255;
      wrong++;
    }
  }

  long failed = 0, rounds = 0;
  for (int w = 0; w < WORDS && !encoding; w++) {
    memcpy(work, received[w], N);
    decode(work);
    failed += memcmp(work, sent[w], N) != 0;
  }
  double begun = cpu_s(), spent;
  do {
    for (int w = 0; w < WORDS; w++) {
      if (encoding) {
        encode(sent[w], work);
      } else {
        memcpy(work, received[w], N);
        decode(work);
      }
    }
    rounds++;
    spent = cpu_s() - begun;
  } while (spent < seconds);
  report((double)rounds * WORDS * DATA * 8, spent, (double)failed / WORDS);
  return 0;
}
