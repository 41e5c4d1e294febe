use super::*;
use proptest::prelude::*;

/// Pseudo-random bytes from a seed.
fn noise(len: usize, seed: u64) -> Vec<u8> {
    let mut state = seed.wrapping_mul(2).wrapping_add(1);
    let next = || {
        state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        (state >> 56) as u8
    };
    std::iter::repeat_with(next).take(len).collect()
}

/// The parity by definition, with the field's own multiplication.
fn reference_parity(data: &[u8], block_bytes: usize, k: usize, m: usize) -> Vec<u8> {
    let mut parity = vec![0; m * block_bytes];
    for i in 0..m {
        for j in 0..k {
            let coefficient = FIELD.inverse((255 - i as u8) ^ j as u8);
            for at in 0..block_bytes {
                parity[i * block_bytes + at] ^= FIELD.multiply(coefficient, data[j * block_bytes + at]);
            }
        }
    }
    parity
}

/// The size of a group, small ones as often as large ones, and a block length, often near that of a vector.
fn group() -> impl Strategy<Value = (usize, usize, usize)> {
    let blocks = prop_oneof![2..=40usize, 2..=256usize];
    let bytes = prop_oneof![1..=70usize, 120..=140usize, 250..=330usize, Just(1400), Just(2048), 4090..=4100usize];
    (blocks, bytes)
        .prop_flat_map(|(blocks, bytes)| (1..blocks, Just(blocks), Just(bytes)))
        .prop_map(|(m, blocks, bytes)| (blocks - m, m.min(24), bytes))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(150))]

    #[test]
    fn every_level_encodes_the_definition((k, m, block_bytes) in group(), seed: u64) {
        let data = noise(k * block_bytes.min(330), seed);
        let block_bytes = block_bytes.min(330);
        let expected = reference_parity(&data, block_bytes, k, m);
        for simd in Simd::available() {
            let mut parity = vec![0xa5; m * block_bytes];
            Cauchy::with_simd(k, m, simd).unwrap().encode(&data, block_bytes, &mut parity).unwrap();
            prop_assert_eq!(&parity, &expected, "{:?}", simd);
        }
    }

    #[test]
    fn any_m_losses_are_recovered((k, m, block_bytes) in group(), seed: u64, losses in 0.0..=1.0f64) {
        let data = noise(k * block_bytes, seed);
        let mut order: Vec<usize> = (0..k + m).collect();
        let dice = noise(k + m, seed ^ 0x5555);
        order.sort_by_key(|&at| dice[at]);
        let mut lost = vec![false; k + m];
        for &at in &order[..(losses * m as f64).round() as usize] {
            lost[at] = true;
        }
        let mut workspace = Workspace::default();
        for simd in Simd::available() {
            let code = Cauchy::with_simd(k, m, simd).unwrap();
            let mut blocks = data.clone();
            blocks.resize((k + m) * block_bytes, 0);
            let (sent, parity) = blocks.split_at_mut(k * block_bytes);
            code.encode(sent, block_bytes, parity).unwrap();
            for (block, _) in blocks.chunks_mut(block_bytes).zip(&lost).filter(|(_, lost)| **lost) {
                block.fill(0xcc);
            }
            let parity = blocks[k * block_bytes..].to_vec();
            code.decode(&mut blocks, block_bytes, &lost, &mut workspace).unwrap();
            prop_assert!(blocks[..k * block_bytes] == data, "{:?}", simd);
            prop_assert!(blocks[k * block_bytes..] == parity, "parity is left alone");
        }
    }

    #[test]
    fn no_arguments_panic(
        k in 0..20usize, m in 0..20usize, block_bytes in 0..70usize,
        data in 0..1400usize, parity in 0..1400usize,
        lost in prop::collection::vec(any::<bool>(), 0..40),
    ) {
        let Ok(code) = Cauchy::new(k, m) else {
            prop_assert!(k == 0 || m == 0);
            return Ok(());
        };
        let encoded = code.encode(&vec![1; data], block_bytes, &mut vec![0; parity]);
        prop_assert_eq!(encoded.is_ok(), block_bytes > 0 && data == k * block_bytes && parity == m * block_bytes);
        let mut blocks = vec![7; (k + m) * block_bytes];
        let decoded = code.decode(&mut blocks, block_bytes, &lost, &mut Workspace::default());
        let fits = block_bytes > 0 && lost.len() == k + m && lost.iter().filter(|&&is| is).count() <= m;
        prop_assert_eq!(decoded.is_ok(), fits);
    }
}

#[test]
fn every_pattern_of_a_small_group() {
    let (k, m, block_bytes) = (5, 4, 11);
    let code = Cauchy::new(k, m).unwrap();
    let mut whole = noise((k + m) * block_bytes, 3);
    let (data, parity) = whole.split_at_mut(k * block_bytes);
    code.encode(data, block_bytes, parity).unwrap();
    let mut workspace = Workspace::default();
    for pattern in 0..1u32 << (k + m) {
        let lost: Vec<bool> = (0..k + m).map(|at| pattern >> at & 1 == 1).collect();
        let mut blocks = whole.clone();
        for at in (0..k + m).filter(|&at| lost[at]) {
            blocks[at * block_bytes..][..block_bytes].fill(0);
        }
        let before = blocks.clone();
        let decoded = code.decode(&mut blocks, block_bytes, &lost, &mut workspace);
        if pattern.count_ones() as usize <= m {
            assert_eq!(decoded, Ok(()));
            assert_eq!(blocks[..k * block_bytes], whole[..k * block_bytes]);
        } else {
            assert_eq!(decoded, Err(MdsError::TooManyLost { lost: pattern.count_ones() as usize, k, m }));
            assert_eq!(blocks, before);
        }
    }
}

#[test]
fn as_much_parity_as_the_field_has_elements() {
    for (k, m) in [(128, 128), (1, 255), (255, 1), (156, 100)] {
        for simd in Simd::available() {
            let code = Cauchy::with_simd(k, m, simd).unwrap();
            let data = noise(k * 23, 8);
            let mut blocks = data.clone();
            blocks.resize((k + m) * 23, 0);
            let (sent, parity) = blocks.split_at_mut(k * 23);
            code.encode(sent, 23, parity).unwrap();
            let mut lost = vec![false; k + m];
            lost[..k.min(m)].fill(true);
            blocks[..k.min(m) * 23].fill(0);
            code.decode(&mut blocks, 23, &lost, &mut Workspace::default()).unwrap();
            assert!(blocks[..k * 23] == data, "{k} + {m} {simd:?}");
        }
    }
}

#[test]
fn more_parity_can_follow_later() {
    let data = noise(10 * 23, 1);
    let (mut few, mut many) = (vec![0; 2 * 23], vec![0; 6 * 23]);
    Cauchy::new(10, 2).unwrap().encode(&data, 23, &mut few).unwrap();
    Cauchy::new(10, 6).unwrap().encode(&data, 23, &mut many).unwrap();
    assert_eq!(few, many[..2 * 23]);
}

#[test]
fn errors_name_the_rule() {
    assert_eq!(Cauchy::new(0, 4).unwrap_err(), MdsError::Empty { k: 0, m: 4 });
    assert_eq!(Cauchy::new(4, 0).unwrap_err(), MdsError::Empty { k: 4, m: 0 });
    assert_eq!(
        Cauchy::new(250, 7).unwrap_err().to_string(),
        "k + m = 250 + 7 blocks exceed 256, the most that this code has; make smaller groups"
    );
    assert!(Cauchy::new(usize::MAX, 2).is_err());
    let code = Cauchy::new(4, 2).unwrap();
    assert_eq!(code.encode(&[], 0, &mut []), Err(MdsError::NoBytes));
    assert_eq!(
        code.encode(&[0; 41], 10, &mut [0; 20]).unwrap_err().to_string(),
        "data has 41 bytes; 4 blocks of 10 bytes are needed, after each other"
    );
    assert!(code.encode(&[0; 8], usize::MAX / 2, &mut [0; 20]).is_err());
    let mut workspace = Workspace::default();
    assert_eq!(
        code.decode(&mut [0; 60], 10, &[true; 6], &mut workspace).unwrap_err().to_string(),
        "6 of k + m = 4 + 2 blocks are lost; the code recovers at most m = 2"
    );
    assert_eq!(
        code.decode(&mut [0; 60], 10, &[true; 5], &mut workspace),
        Err(MdsError::Flags { flags: 5, k: 4, m: 2 })
    );
}
