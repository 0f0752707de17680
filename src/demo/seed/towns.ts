/** A town with its first and last postcode number and its dialling code. */
export interface Town {
  plaats: string;
  provincie: string;
  postcodes: readonly [number, number];
  netnummer: string;
}

/** Where customers live. The north is the working area of the second workspace. */
export const towns: readonly Town[] = [
  town('Groningen', 'Groningen', 9711, 9747, '050'),
  town('Hoogezand', 'Groningen', 9601, 9603, '0598'),
  town('Delfzijl', 'Groningen', 9930, 9936, '0596'),
  town('Leeuwarden', 'Friesland', 8911, 8941, '058'),
  town('Sneek', 'Friesland', 8601, 8608, '0515'),
  town('Drachten', 'Friesland', 9201, 9207, '0512'),
  town('Sint Annaparochie', 'Friesland', 9076, 9076, '0518'),
  town('Assen', 'Drenthe', 9401, 9408, '0592'),
  town('Emmen', 'Drenthe', 7811, 7828, '0591'),
  town('Zwolle', 'Overijssel', 8011, 8045, '038'),
  town('Enschede', 'Overijssel', 7511, 7548, '053'),
  town('Deventer', 'Overijssel', 7411, 7437, '0570'),
  town('Lelystad', 'Flevoland', 8211, 8245, '0320'),
  town('Almere', 'Flevoland', 1311, 1363, '036'),
  town('Arnhem', 'Gelderland', 6811, 6846, '026'),
  town('Nijmegen', 'Gelderland', 6511, 6546, '024'),
  town('Apeldoorn', 'Gelderland', 7311, 7339, '055'),
  town('Ede', 'Gelderland', 6711, 6718, '0318'),
  town('Utrecht', 'Utrecht', 3511, 3585, '030'),
  town('Amersfoort', 'Utrecht', 3811, 3829, '033'),
  town('Nieuwegein', 'Utrecht', 3431, 3439, '030'),
  town('Houten', 'Utrecht', 3991, 3995, '030'),
  town('Amsterdam', 'Noord-Holland', 1011, 1109, '020'),
  town('Haarlem', 'Noord-Holland', 2011, 2037, '023'),
  town('Alkmaar', 'Noord-Holland', 1811, 1827, '072'),
  town('Den Helder', 'Noord-Holland', 1781, 1789, '0223'),
  town('Rotterdam', 'Zuid-Holland', 3011, 3089, '010'),
  town("'s-Gravenhage", 'Zuid-Holland', 2491, 2597, '070'),
  town('Leiden', 'Zuid-Holland', 2311, 2334, '071'),
  town('Gouda', 'Zuid-Holland', 2801, 2809, '0182'),
  town('Dordrecht', 'Zuid-Holland', 3311, 3329, '078'),
  town('Middelburg', 'Zeeland', 4331, 4341, '0118'),
  town('Goes', 'Zeeland', 4461, 4465, '0113'),
  town('Breda', 'Noord-Brabant', 4811, 4839, '076'),
  town('Tilburg', 'Noord-Brabant', 5011, 5049, '013'),
  town('Eindhoven', 'Noord-Brabant', 5611, 5658, '040'),
  town("'s-Hertogenbosch", 'Noord-Brabant', 5211, 5237, '073'),
  town('Maastricht', 'Limburg', 6211, 6229, '043'),
  town('Venlo', 'Limburg', 5911, 5928, '077'),
  town('Roermond', 'Limburg', 6041, 6049, '0475'),
];

/** The towns of Groningen, Friesland and Drenthe. */
export function northern(): readonly Town[] {
  return towns.filter((each) => ['Groningen', 'Friesland', 'Drenthe'].includes(each.provincie));
}

function town(plaats: string, provincie: string, first: number, last: number, netnummer: string): Town {
  return { plaats, provincie, postcodes: [first, last], netnummer };
}
