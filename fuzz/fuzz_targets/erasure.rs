//! Any group and any losses: the lost blocks come back, or an error leaves everything as it was; the same at every level of SIMD.
#![no_main]

use farlink_fec::erasure::{Cauchy, Mds, RaptorQ, Workspace};
use farlink_fec::simd::Simd;
use libfuzzer_sys::arbitrary::{Result, Unstructured};

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    let _ = recover(&mut Unstructured::new(bytes));
});

fn recover(input: &mut Unstructured) -> Result<()> {
    let (k, m) = if input.arbitrary()? {
        (input.int_in_range(0..=257)?, input.int_in_range(0..=257)?)
    } else {
        (input.int_in_range(1..=20)?, input.int_in_range(1..=12)?)
    };
    let block_bytes = input.int_in_range(0..=200)?;
    let Ok(mut mds) = Mds::new(k, m) else { return Ok(()) };
    let parity_bytes = mds.parity_block_bytes(block_bytes);
    let flags: Vec<u8> = input.arbitrary()?;
    let lost: Vec<bool> =
        (0..k + m).map(|at| flags.get(at / 8).is_some_and(|byte| byte >> (at % 8) & 1 == 1)).collect();
    let filler: u8 = input.arbitrary()?;
    let data: Vec<u8> = (0..k * block_bytes).map(|at| (at as u8).wrapping_mul(filler) ^ (at >> 8) as u8).collect();

    let mut parity = vec![0; m * parity_bytes];
    let encoded = mds.encode(&data, block_bytes, &mut parity);
    assert_eq!(encoded.is_ok(), block_bytes > 0);
    let mut blocks = [&data[..], &parity].concat();
    let begin_of = |at: usize| if at < k { at * block_bytes } else { k * block_bytes + (at - k) * parity_bytes };
    for at in (0..k + m).filter(|&at| lost[at]) {
        blocks[begin_of(at)..begin_of(at + 1)].fill(filler);
    }
    let received = blocks.clone();
    let possible = block_bytes > 0 && lost.iter().filter(|&&lost| lost).count() <= m;
    assert_eq!(mds.decode(&mut blocks, block_bytes, &lost).is_ok(), possible);
    if possible {
        assert!(blocks[..k * block_bytes] == data, "not what was sent");
    } else {
        assert!(blocks == received, "given up, but changed");
    }
    // Lengths and flags that do not fit.
    let _ = mds.decode(&mut blocks.clone(), input.arbitrary()?, &lost);
    let _ = mds.decode(&mut blocks.clone(), block_bytes, &lost[..input.int_in_range(0..=k + m)?]);
    let _ = mds.encode(&data, input.arbitrary()?, &mut parity.clone());

    if block_bytes > 0 && k + m <= Cauchy::BLOCKS_MAX {
        for simd in Simd::available() {
            let code = Cauchy::with_simd(k, m, simd).expect("the group is small");
            let mut same = vec![0xa5; parity.len()];
            code.encode(&data, block_bytes, &mut same).expect("the lengths fit");
            assert!(same == parity, "{simd:?} encodes differently");
            let mut again = received.clone();
            let _ = code.decode(&mut again, block_bytes, &lost, &mut Workspace::default());
            assert!(again == blocks, "{simd:?} decodes differently");
        }
    }

    if k <= 24
        && let Ok(code) = RaptorQ::new(k, block_bytes)
    {
        let repair = code
            .encoder(&data)
            .expect("the lengths fit")
            .repair(k as u32..(k + m) as u32)
            .expect("these are repair symbols");
        let all = data.chunks_exact(block_bytes).chain(repair.chunks_exact(block_bytes));
        let kept = all.enumerate().filter(|&(at, _)| !lost[at]).map(|(at, symbol)| (at as u32, symbol));
        if let Ok(made) = code.decode(kept) {
            assert!(made == data, "RaptorQ: not what was sent");
        }
        let _ = code.decode([(input.arbitrary()?, &data[..])]);
    }
    Ok(())
}
