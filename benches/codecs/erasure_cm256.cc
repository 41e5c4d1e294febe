// cm256cc (Cauchy matrix over GF(256), SSSE3): encode, or decode of m lost data blocks, each time another pattern.
// Usage: erasure_cm256 encode|decode K M BYTES SECONDS
#include <cm256cc/cm256.h>

#include <vector>

#include "patterns.h"

int main(int argc, char **argv) {
  must(argc == 6, "usage: erasure_cm256 encode|decode K M BYTES SECONDS");
  int k = atoi(argv[2]), m = atoi(argv[3]), bytes = atoi(argv[4]);
  static patterns_t p;
  patterns_fill(&p, k, m);
  CM256 codec;
  must(codec.isInitialized(), "cm256 does not start");
  CM256::cm256_encoder_params parameters = {k, m, bytes};

  std::vector<uint8_t> data(k * bytes), parity(m * bytes), work(m * bytes);
  uint64_t seed = 1;
  for (auto &byte : data) byte = next_random(&seed) >> 56;
  CM256::cm256_block originals[256], received[256];
  for (int i = 0; i < k; i++) originals[i] = {data.data() + i * bytes, uint8_t(i)};
  codec.cm256_encode(parameters, originals, parity.data());

  // It repairs in the place of the parity blocks, so these are copied anew for every call.
  auto decode = [&](const uint8_t *lost) {
    memcpy(work.data(), parity.data(), work.size());
    for (int i = 0, next = 0; i < k; i++) {
      if (next < m && lost[next] == i) {
        received[i] = {work.data() + next * bytes, uint8_t(k + next)};
        next++;
      } else {
        received[i] = originals[i];
      }
    }
    must(codec.cm256_decode(parameters, received) == 0, "cm256 does not decode");
  };

  bool encoding = argv[1][0] == 'e';
  long failed = 0, calls = 0;
  for (int i = 0; i < 64 && !encoding; i++) {
    decode(p.lost[i]);
    for (int j = 0; j < k; j++) failed += memcmp(received[j].Block, data.data() + received[j].Index * bytes, bytes) != 0;
  }
  double begun = cpu_s(), spent;
  do {
    for (int i = 0; i < BATCH; i++, calls++) {
      if (encoding) codec.cm256_encode(parameters, originals, parity.data());
      else decode(p.lost[calls % PATTERNS]);
    }
    spent = cpu_s() - begun;
  } while (spent < atof(argv[5]));
  report(double(calls) * k * bytes * 8, spent, failed / 64.0);
}
