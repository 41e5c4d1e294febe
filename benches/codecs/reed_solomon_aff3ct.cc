// AFF3CT's Reed-Solomon (255, 223): encode, or decode words with so many symbol errors.
// Usage: reed_solomon_aff3ct encode|ERRORS SECONDS
// Its words are bits, one to an integer, as its modules pass them on; making symbols of them is part of its coder and timed. A word
// begins with its parity.
#include <Module/Decoder/RS/Standard/Decoder_RS_std.hpp>
#include <Module/Encoder/RS/Encoder_RS.hpp>
#include <Tools/Code/RS/RS_polynomial_generator.hpp>

#include <algorithm>
#include <vector>

#include "frames.h"

enum { N = 255, DATA = 223, WORDS = 512 };

int main(int argc, char **argv) {
  must(argc == 3, "usage: reed_solomon_aff3ct encode|ERRORS SECONDS");
  bool encoding = argv[1][0] == 'e';
  int errors = encoding ? 0 : atoi(argv[1]);
  aff3ct::tools::RS_polynomial_generator generator(N, (N - DATA) / 2);
  aff3ct::module::Encoder_RS<int> encoder(DATA, N, generator);
  aff3ct::module::Decoder_RS_std<int, float> decoder(DATA, N, generator);

  uint64_t seed = 1;
  std::vector<int> data(WORDS * DATA * 8), sent(WORDS * N * 8), decoded(DATA * 8);
  for (auto &bit : data) bit = next_random(&seed) >> 63;
  auto encode = [&](int word) { encoder.encode(&data[word * DATA * 8], &sent[word * N * 8]); };
  auto decode = [&](const std::vector<int> &words, int word) { decoder.decode_hiho(&words[word * N * 8], decoded.data()); };
  for (int word = 0; word < WORDS; word++) encode(word);

  std::vector<int> received = sent;
  for (int word = 0; word < WORDS; word++) {
    int places[N];
    for (int i = 0; i < N; i++) places[i] = i;
    for (int i = 0; i < errors; i++) {
      std::swap(places[i], places[i + (next_random(&seed) >> 33) % (N - i)]);
      int wrong = 1 + (next_random(&seed) >> 33) % 255;
      for (int bit = 0; bit < 8; bit++) received[(word * N + places[i]) * 8 + bit] ^= wrong >> bit & 1;
    }
  }
  long failed = 0;
  for (int word = 0; word < WORDS && !encoding; word++) {
    decode(received, word);
    failed += !std::equal(decoded.begin(), decoded.end(), data.begin() + word * DATA * 8);
  }
  double begun = cpu_s(), spent;
  long rounds = 0;
  do {
    for (int word = 0; word < WORDS; word++) {
      if (encoding) encode(word);
      else decode(received, word);
    }
    rounds++;
    spent = cpu_s() - begun;
  } while (spent < atof(argv[2]));
  report((double)rounds * WORDS * DATA * 8, spent, (double)failed / WORDS);
}
