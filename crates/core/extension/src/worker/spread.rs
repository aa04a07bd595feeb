//! The number of a pool's machines in each zone.

use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;

/// The share of the zone with this index: the first zones get the remainder.
#[must_use]
pub fn share(total: i32, index: usize, zones: usize) -> i32 {
    let (Ok(index), Ok(zones)) = (i32::try_from(index), i32::try_from(zones)) else {
        return 0;
    };
    if zones == 0 {
        return total;
    }
    total / zones + i32::from(index < total % zones)
}

/// Limits of a rolling update in a zone: surge and unavailable. A number is divided among the zones; a
/// percentage applies to the zone's own machines. A zone without both gets a surge of 1, because otherwise no
/// machine could be replaced.
#[must_use]
pub fn bounds(
    surge: &IntOrString,
    unavailable: &IntOrString,
    index: usize,
    zones: usize,
) -> (IntOrString, IntOrString) {
    let of_zone = |bound: &IntOrString| match bound {
        IntOrString::Int(total) => IntOrString::Int(share(*total, index, zones)),
        percentage @ IntOrString::String(_) => percentage.clone(),
    };
    let (surge, unavailable) = (of_zone(surge), of_zone(unavailable));
    let nothing = |bound: &IntOrString| match bound {
        IntOrString::Int(number) => *number <= 0,
        IntOrString::String(text) => text.trim_end_matches('%') == "0",
    };
    if nothing(&surge) && nothing(&unavailable) {
        (IntOrString::Int(1), unavailable)
    } else {
        (surge, unavailable)
    }
}

/// The wanted machines of a deployment. `current`: the present number; a cluster autoscaler changes the
/// number within the limits.
#[must_use]
pub fn replicas(minimum: i32, maximum: i32, current: Option<i32>, hibernated: bool) -> i32 {
    if hibernated {
        return 0;
    }
    current.unwrap_or(minimum).max(minimum).min(maximum.max(minimum))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn machines_are_spread_and_none_is_lost() {
        for (total, zones, expected) in [
            (5, 3, vec![2, 2, 1]),
            (2, 3, vec![1, 1, 0]),
            (3, 1, vec![3]),
            (0, 2, vec![0, 0]),
        ] {
            let shares: Vec<_> = (0..zones).map(|index| share(total, index, zones)).collect();
            assert_eq!(shares, expected);
            assert_eq!(shares.iter().sum::<i32>(), total);
        }
    }

    #[test]
    fn every_zone_can_replace_its_machines() {
        let (one, none) = (IntOrString::Int(1), IntOrString::Int(0));
        let percentage = IntOrString::String("20%".into());
        assert_eq!(bounds(&one, &none, 0, 2), (one.clone(), none.clone()));
        assert_eq!(bounds(&one, &none, 1, 2), (one.clone(), none.clone()));
        assert_eq!(bounds(&none, &one, 0, 2), (none.clone(), one.clone()));
        assert_eq!(bounds(&none, &percentage, 1, 2), (none.clone(), percentage));
        let zero = IntOrString::String("0%".into());
        assert_eq!(bounds(&none, &zero, 0, 1), (one, zero));
    }

    #[test]
    fn an_autoscaler_decides_between_the_bounds() {
        for (minimum, maximum, current, hibernated, expected) in [
            (1, 3, None, false, 1),
            (1, 3, Some(2), false, 2),
            (1, 3, Some(7), false, 3),
            (2, 3, Some(0), false, 2),
            (1, 3, Some(2), true, 0),
        ] {
            assert_eq!(replicas(minimum, maximum, current, hibernated), expected);
        }
    }
}
