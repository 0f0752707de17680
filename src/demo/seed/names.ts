/** Words from which the customers are made up. No real company or person is meant. */

export const firstNames =
  `Jan Piet Kees Willem Hendrik Joost Sander Bas Daan Sem Lucas Thijs Ruben Mohammed Ahmed Youssef
Daniël Mei-Lin Anna Maria Johanna Emma Sophie Julia Lotte Femke Sanne Marieke Annelies Ingrid Fatima Zoë Noor Eva
Hilde Geert Sjoerd Tjitske Wiebe Frouke Renée José André Chloé Björn Gülsüm Piet-Hein Anne-Fleur`.split(/\s+/);

/** Tussenvoegsel and surname together, so that "van der Berg" and "de Vries" stay plausible pairs. */
export const surnames = [
  ...'Jansen Bakker Visser Smit Meijer Mulder Bos Vos Peters Hendriks Dekker Brouwer Dijkstra Postma Hoekstra Yılmaz'.split(
    ' ',
  ),
  ...'Kuipers Veenstra Wiersma Haddou Özdemir Nguyen Schäfer Çelik Wouters Timmermans Coëlho Groot'.split(' '),
  'de Vries',
  'de Boer',
  'de Groot',
  'de Graaf',
  'van Dijk',
  'van den Berg',
  'van der Meer',
  'van der Linden',
  'van de Ven',
  "van 't Hof",
  "in 't Veld",
  'ter Braak',
  'op den Kamp',
  'van den Heuvel-Bos',
  'el Amrani',
];

/** Companies that own refrigeration: * stands for a surname. */
export const companies = [
  'Bakkerij *',
  'Bakkerij * & Zn.',
  'Banketbakkerij De Gouden Krakeling (*)',
  'Slagerij *',
  'Keurslagerij *',
  'Ambachtelijke slagerij Gebr. *',
  'Hotel * B.V.',
  'Hotel-Restaurant De Zwaan',
  'Grand Café "De Vlindertuin"',
  "Café 't Hoekje",
  'Brasserie Chez Zoë',
  'Restaurant *',
  'Supermarkt *',
  'Supermarkt * Exploitatie B.V.',
  'Versmarkt *',
  'Viswinkel *',
  'Vishandel Gebr. * V.O.F.',
  'Kaashandel *',
  'IJssalon *',
  'Bloemenkwekerij * B.V.',
  'Zuivelboerderij *',
  'Apotheek *',
  'Tandartspraktijk *',
  'Zorgcentrum De Lindehof',
  'Datacenter * B.V.',
  'Sportcentrum *',
  'Koel- en vrieshuis * B.V.',
  'Groothandel * Foods B.V.',
  'Snackbar \\*/ Cafetaria *',
  'VvE Residentie Parkzicht',
  'Autobedrijf *',
  'Bierbrouwerij *',
];

export const streets = [
  ...'Dorpsstraat Kerkstraat Hoofdstraat Stationsweg Molenweg Julianastraat Wilhelminalaan Beatrixlaan Marktplein'.split(
    ' ',
  ),
  ...'Industrieweg Handelsweg Ambachtsweg Nijverheidsstraat Energieweg Ampèrestraat Voltaweg Edisonstraat'.split(' '),
  ...'Eikenlaan Lindenlaan Beukenhof Kastanjestraat Havenkade Singel Nieuwstraat Schoolstraat Parallelweg'.split(' '),
  'Burgemeester van der Heijdenlaan',
  'Dr. Schaepmanstraat',
  "'s-Gravenweg",
  "Laan van 't Loo",
  'Plein 1944',
  '2e Weteringdwarsstraat',
  'Oude Rijksweg',
  'Prof. Lorentzlaan',
];

export const additions = ['A', 'B', 'C', 'a', 'bis', 'bis A', '1', '2', '3-hoog', 'hs', 'II', 'unit 4', 'ged. zuid'];
