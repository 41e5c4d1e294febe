/* ISA-L's erasure code (Cauchy matrix over GF(256)): encode, or decode of m lost data blocks, each time another pattern.
 * Usage: erasure_isal LEVEL encode|decode K M BYTES SECONDS [PAD]
 * LEVEL: `dispatched`, what ISA-L chooses on this machine; `avx2`; from 2.31 on, `avx2-gfni` and `avx512-gfni` too.
 * With PAD, the blocks are padded to a multiple of so many bytes; the user's bytes are still counted. */
#include <isa-l.h>

#include "patterns.h"

#define HAS_GFNI (ISAL_VERSION >= ISAL_MAKE_VERSION(2, 31, 0))
#if HAS_GFNI
/* Not in its headers: the functions among which `ec_encode_data` and `ec_init_tables` choose. */
void ec_init_tables_gfni(int k, int rows, unsigned char *a, unsigned char *tables);
void ec_encode_data_avx2_gfni(int length, int k, int rows, unsigned char *tables, unsigned char **from, unsigned char **to);
void ec_encode_data_avx512_gfni(int length, int k, int rows, unsigned char *tables, unsigned char **from, unsigned char **to);
#define ec_init_tables_nibbles ec_init_tables_base
#else
#define ec_init_tables_nibbles ec_init_tables
#endif

static void (*make_tables)(int, int, unsigned char *, unsigned char *) = ec_init_tables;
static void (*multiply)(int, int, int, unsigned char *, unsigned char **, unsigned char **) = ec_encode_data;

static void choose(const char *level) {
  if (strcmp(level, "dispatched") == 0) return;
  if (strcmp(level, "avx2") == 0) {
    make_tables = ec_init_tables_nibbles, multiply = ec_encode_data_avx2;
    return;
  }
#if HAS_GFNI
  make_tables = ec_init_tables_gfni;
  multiply = strcmp(level, "avx2-gfni") == 0 ? ec_encode_data_avx2_gfni : ec_encode_data_avx512_gfni;
  if (multiply == ec_encode_data_avx2_gfni || strcmp(level, "avx512-gfni") == 0) return;
#endif
  must(0, "no such level in this version of ISA-L");
}

typedef struct {
  int k, m, length;
  uint8_t *matrix, *tables, *chosen, *inverse, *rows;
  uint8_t *blocks[256], *survivors[256], *repaired[256];
} codec_t;

/* ISA-L leaves the choice of rows, the inverse and the tables to its caller; they belong to each call. */
static void decode(codec_t *c, const uint8_t *lost) {
  size_t k = c->k;
  for (int i = 0, next = 0; i < c->k; i++) {
    int source = i;
    if (next < c->m && lost[next] == i) source = c->k + next++;
    memcpy(c->chosen + k * i, c->matrix + k * source, k);
    c->survivors[i] = c->blocks[source];
  }
  must(gf_invert_matrix(c->chosen, c->inverse, c->k) == 0, "a matrix of ISA-L has no inverse");
  for (int i = 0; i < c->m; i++) memcpy(c->rows + k * i, c->inverse + k * lost[i], k);
  make_tables(c->k, c->m, c->rows, c->tables);
  multiply(c->length, c->k, c->m, c->tables, c->survivors, c->repaired);
}

int main(int argc, char **argv) {
  must(argc >= 7, "usage: erasure_isal LEVEL encode|decode K M BYTES SECONDS [PAD]");
  choose(argv[1]);
  int k = atoi(argv[3]), m = atoi(argv[4]), bytes = atoi(argv[5]), pad = argc > 7 ? atoi(argv[7]) : 1;
  static codec_t c;
  c = (codec_t){.k = k, .m = m, .length = (bytes + pad - 1) / pad * pad};
  static patterns_t p;
  patterns_fill(&p, k, m);

  c.matrix = malloc((size_t)(k + m) * k), c.tables = malloc((size_t)32 * k * m);
  c.chosen = malloc((size_t)k * k), c.inverse = malloc((size_t)k * k), c.rows = malloc((size_t)m * k);
  uint64_t seed = 1;
  size_t room = (c.length + 63) / 64 * 64;
  for (int i = 0; i < k + m; i++) {
    c.blocks[i] = aligned_alloc(64, room);
    for (int j = 0; j < c.length; j++) c.blocks[i][j] = i < k && j < bytes ? next_random(&seed) >> 56 : 0;
    if (i < m) c.repaired[i] = aligned_alloc(64, room);
  }
  gf_gen_cauchy1_matrix(c.matrix, k + m, k);
  make_tables(k, m, c.matrix + (size_t)k * k, c.tables);
  multiply(c.length, k, m, c.tables, c.blocks, c.blocks + k);

  int encoding = argv[2][0] == 'e';
  long failed = 0, calls = 0;
  for (int i = 0; i < 64 && !encoding; i++) {
    decode(&c, p.lost[i]);
    for (int j = 0; j < m; j++) failed += memcmp(c.repaired[j], c.blocks[p.lost[i][j]], bytes) != 0;
  }
  double begun = cpu_s(), spent;
  do {
    for (int i = 0; i < BATCH; i++, calls++) {
      if (encoding) multiply(c.length, k, m, c.tables, c.blocks, c.blocks + k);
      else decode(&c, p.lost[calls % PATTERNS]);
    }
    spent = cpu_s() - begun;
  } while (spent < atof(argv[6]));
  report((double)calls * k * bytes * 8, spent, failed / 64.0);
  return 0;
}
